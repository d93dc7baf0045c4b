import Formats
import Model
import SecretMemory
import Store
import Tree

extension ImportPlan {
  static func step(
    _ entry: SettingEntry, _ suites: inout PresentSuites, _ conflicts: ImportOptions.Conflicts
  ) throws(ImportExportError) -> Step {
    do throws(StoreError) {
      guard let present = try suites.snapshot(of: entry.suite)?.entries[entry.key]?.value else { return .new }
      return present == entry.value ? .same : Step(conflicts)
    } catch {
      throw ImportExportError(TreePaths.path(entry), error)
    }
  }

  static func planned(
    _ entry: ItemEntry, _ keychain: KeychainStore?, _ conflicts: ImportOptions.Conflicts
  ) throws(ImportExportError) -> PlannedItem {
    guard let keychain else { throw ImportExportError(nil, "there is no keychain for secrets") }
    let item = try item(entry)
    do throws(StoreError) {
      let present = try keychain.read { $0[entry.identity] }.first
      return PlannedItem(
        item: item, attributes: entry.attributes, secret: entry.secret, otpauth: entry.otpauth,
        step: try step(entry, item, present, keychain, conflicts), present: present)
    } catch {
      throw ImportExportError(TreePaths.path(entry.identity), error)
    }
  }

  /// The item as it is where there is none yet.
  private static func item(_ entry: ItemEntry) throws(ImportExportError) -> Item {
    let now = Timestamp.now
    var item = Item(id: ItemID(rawValue: ""), identity: entry.identity, created: now, modified: now)
    do throws(StoreError) {
      for attribute in entry.attributes {
        try ItemAttributes.set(attribute.name, to: attribute.value, on: &item, isImported: true)
      }
      if entry.otpauth != nil { item.otpauth = FurtherSecret(modified: item.modified) }
      return item
    } catch {
      throw ImportExportError(TreePaths.path(entry.identity), error)
    }
  }

  private static func step(
    _ entry: ItemEntry, _ item: Item, _ present: Item?, _ keychain: KeychainStore,
    _ conflicts: ImportOptions.Conflicts
  ) throws(StoreError) -> Step {
    // An entry that can't be stored is an error before anything is stored.
    let secret = try secret(entry.secret)
    let uri = try Self.secret(entry.otpauth ?? entry.secret)
    if entry.otpauth != nil { try KeyURI.check(uri) }
    guard let present else { return .new }
    guard hasAttributes(entry.attributes, of: item, present) else { return Step(conflicts) }
    // One that may not be read without asking is not read for a comparison.
    guard present.access.isEmpty, present.programs == nil else { return Step(conflicts) }
    do throws(StoreError) {
      let stored = try keychain.secret(of: present.id)
      guard secret == stored else { return Step(conflicts) }
      guard entry.otpauth != nil else { return .same }
      guard present.otpauth != nil else { return Step(conflicts) }
      let storedURI = try keychain.otpauth(of: present)
      return uri == storedURI ? .same : Step(conflicts)
    } catch {
      // Rules of its folder guard it, or it is damaged and may be replaced.
      switch error {
      case .accessDenied, .damaged: return Step(conflicts)
      default: throw error
      }
    }
  }

  /// Whether an item has every attribute that the import names. Times are no values: they don't conflict.
  private static func hasAttributes(_ attributes: [ItemEntry.Attribute], of item: Item, _ present: Item)
    -> Bool
  {
    attributes.allSatisfy { attribute in
      guard attribute.name != "user.keyhole.created", attribute.name != "user.keyhole.modified" else {
        return true
      }
      let value = try? ItemAttributes.value(attribute.name, of: item)
      return value == (try? ItemAttributes.value(attribute.name, of: present))
    }
  }

  /// The attributes of an item that say who may see its secret, and when.
  static func protection(of item: Item) -> [ItemEntry.Attribute] {
    DistinctItems.protectionNames.sorted().compactMap { name in
      // A default is none that has to be said.
      guard ItemAttributes.names(of: item).contains(name) else { return nil }
      return (try? ItemAttributes.value(name, of: item)).map { ItemEntry.Attribute(name, $0) }
    }
  }

  /// A secret as it will be stored. - Throws: `invalidValue`, `tooLarge`.
  static func secret(_ slice: SecretSlice) throws(StoreError) -> SecretBytes {
    let bytes: SecretBytes
    do throws(FormatError) { bytes = try slice.bytes() } catch {
      throw .invalidValue(reason: error.reason)
    }
    guard bytes.count <= FileTree.secretLimit else { throw .tooLarge(limit: FileTree.secretLimit) }
    return bytes
  }
}

extension ImportPlan.Step {
  fileprivate init(_ conflicts: ImportOptions.Conflicts) {
    self =
      switch conflicts {
      case .fail: .conflict
      case .replace: .replace
      case .keep: .keep
      }
  }
}
