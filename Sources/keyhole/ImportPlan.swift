import Model
import SecretMemory
import Store
import Transfer
import Tree

/// What an import will do, found out before anything is changed.
struct ImportPlan {
  enum Policy {
    case fail
    case replace
    case keep
  }

  enum Step: String {
    case new
    case same
    case replace
    case keep
    case conflict
  }

  private(set) var settings: [(entry: SettingEntry, step: Step)] = []
  private(set) var items: [(item: Item, secret: Passage, step: Step)] = []
  private let remarks: [String]
  private let duplicates: [String]

  /// - Throws: `Failure` for what can't be stored, or compared.
  init(_ contents: Contents, _ stores: Stores, onConflict policy: Policy) throws {
    remarks = contents.remarks
    var duplicates: [String] = []
    var keys: [String: SettingValue] = [:]
    for entry in contents.settings {
      let path = Self.path(entry)
      if let other = keys.updateValue(entry.value, forKey: path) {
        if other != entry.value { duplicates.append(path) }
        continue
      }
      settings.append((entry, try Self.step(entry, stores, policy)))
    }
    var identities: [ItemIdentity: Passage] = [:]
    for entry in contents.items {
      if let other = identities.updateValue(entry.secret, forKey: entry.identity) {
        if try !Self.isEqual(other, entry.secret) { duplicates.append(Self.path(entry.identity)) }
        continue
      }
      let item = try Self.item(entry)
      items.append((item, entry.secret, try Self.step(item, entry.secret, stores, policy)))
    }
    self.duplicates = duplicates
  }

  /// How many things will be written.
  var changes: Int {
    settings.count { $0.step.isChange } + items.count { $0.step.isChange }
  }

  /// Why nothing may be done; nil: it may.
  var conflict: String? {
    if !duplicates.isEmpty {
      return "it holds different values for the same name: \(Self.list(duplicates)); nothing was imported"
    }
    let taken = lines.filter { $0.step == .conflict }.map(\.path)
    guard !taken.isEmpty else { return nil }
    return
      "other values are there already: \(Self.list(taken)); nothing was imported (--replace or --keep decides)"
  }

  var description: String {
    lines.map { "\($0.step.rawValue)\t\($0.path)\n" }.joined()
      + duplicates.map { "duplicate\t\($0)\n" }.joined()
      + remarks.map { "left out\t\($0)\n" }.joined()
  }

  var summary: String {
    let same = lines.count { $0.step == .same || $0.step == .keep }
    return
      "\(settings.count { $0.step.isChange }) settings and \(items.count { $0.step.isChange }) secrets were "
      + "imported; \(same) were there already"
  }

  private var lines: [(step: Step, path: String)] {
    settings.map { ($0.step, Self.path($0.entry)) } + items.map { ($0.step, Self.path($0.item.identity)) }
  }

  private static func list(_ paths: [String]) -> String {
    let shown = paths.prefix(3).map(\.escapedForTerminal).joined(separator: ", ")
    return paths.count > 3 ? "\(shown) and \(paths.count - 3) more" : shown
  }

  static func path(_ entry: SettingEntry) -> String {
    "defaults/\(PathName(entry.suite).string)/\(PathName(entry.key).string)"
  }

  static func path(_ identity: ItemIdentity) -> String {
    let name = ItemFolderName(identity)
    let parts = [name.itemClass.rawValue, name.parent?.string, name.leaf.string]
    return "keychain/" + parts.compactMap { $0 }.joined(separator: "/")
  }
}

extension ImportPlan.Step {
  var isChange: Bool { self == .new || self == .replace }

  fileprivate init(_ policy: ImportPlan.Policy) {
    self =
      switch policy {
      case .fail: .conflict
      case .replace: .replace
      case .keep: .keep
      }
  }
}

extension ImportPlan {
  private static func step(_ entry: SettingEntry, _ stores: Stores, _ policy: Policy) throws -> Step {
    do throws(StoreError) {
      guard let suite = try stores.settings.existingSuite(entry.suite) else { return .new }
      guard let present = try suite.fetch()?.entries[entry.key]?.value else { return .new }
      return present == entry.value ? .same : Step(policy)
    } catch {
      throw Failure(path(entry), error)
    }
  }

  private static func item(_ entry: ItemEntry) throws -> Item {
    let now = Timestamp.now
    var item = Item(id: ItemID(rawValue: ""), identity: entry.identity, created: now, modified: now)
    do throws(StoreError) {
      for attribute in entry.attributes {
        try ItemAttributes.set(attribute.name, to: attribute.value, on: &item)
      }
      return item
    } catch {
      throw Failure(path(entry.identity), error)
    }
  }

  private static func step(
    _ item: Item, _ secret: Passage, _ stores: Stores, _ policy: Policy
  ) throws -> Step {
    guard let keychain = stores.keychain else { throw Failure(nil, "there is no keychain for secrets") }
    do throws(StoreError) {
      guard let present = try keychain.read({ $0[item.identity] }).first else { return .new }
      // One that may not be read without asking is not read for a comparison.
      guard present.access.isEmpty else { return Step(policy) }
      let stored = try keychain.secret(of: present.id)
      let isSame = try bytes(secret, of: item.identity) == stored
      return isSame ? .same : Step(policy)
    } catch {
      throw Failure(path(item.identity), error)
    }
  }

  private static func isEqual(_ left: Passage, _ right: Passage) throws -> Bool {
    do throws(TransferError) { return try left.bytes() == right.bytes() } catch {
      throw Failure(nil, error.reason)
    }
  }

  static func bytes(_ secret: Passage, of identity: ItemIdentity) throws(StoreError) -> SecretBytes {
    let bytes: SecretBytes
    do throws(TransferError) { bytes = try secret.bytes() } catch {
      throw .invalidValue(reason: error.reason)
    }
    guard bytes.count <= Tree.secretLimit else { throw .tooLarge(limit: Tree.secretLimit) }
    return bytes
  }
}

/// Does what a plan says; where something fails, what was done is undone.
struct ImportRun {
  private let stores: Stores
  private final class Journal {
    var undo: [() throws -> Void] = []
  }

  private let journal = Journal()

  init(_ stores: Stores) {
    self.stores = stores
  }

  func apply(_ plan: ImportPlan, _ advance: () -> Void) throws {
    do {
      let changed = plan.settings.filter { $0.step.isChange }.map(\.entry)
      for (suite, entries) in Dictionary(grouping: changed, by: \.suite) {
        try write(entries, to: suite)
        for _ in entries { advance() }
      }
      for (item, secret, step) in plan.items where step.isChange {
        try write(item, secret)
        advance()
      }
    } catch let failure as Failure {
      let isUndone = undo()
      let rest = isUndone ? "nothing was imported" : "what was done before could not all be undone"
      throw Failure(failure.subject, "\(failure.reason); \(rest)")
    }
  }

  private func undo() -> Bool {
    journal.undo.reversed().reduce(true) { isUndone, step in (try? step()) != nil && isUndone }
  }

  /// A suite changes in one step.
  private func write(_ entries: [SettingEntry], to name: ExactString) throws {
    let settings = stores.settings
    do throws(StoreError) {
      if try settings.existingSuite(name) == nil {
        try settings.createSuite(name)
        journal.undo.append { try settings.removeSuite(name) }
      }
      var before: SharedDictionary<Setting>?
      try settings.suite(name).update { (contents) throws(StoreError) in
        before = contents.settings
        for entry in entries { contents.settings[entry.key] = Setting(entry.value) }
      }
      journal.undo.append { [before] in
        try settings.suite(name).update { (contents) throws(StoreError) in
          for entry in entries { contents.settings[entry.key] = before?[entry.key] }
        }
      }
    } catch {
      throw Failure("defaults/\(PathName(name).string)", error)
    }
  }

  private func write(_ item: Item, _ secret: Passage) throws {
    guard let keychain = stores.keychain else { return }
    do throws(StoreError) {
      let bytes = try ImportPlan.bytes(secret, of: item.identity)
      guard let present = try keychain.read({ $0[item.identity] }).first else {
        let added = try keychain.add(item, secret: bytes)
        return journal.undo.append { try keychain.remove([added.id]) }
      }
      let old = Kept(try keychain.secret(of: present.id))
      try replace(present.id, with: item, bytes, keychain)
      journal.undo.append { try replace(present.id, with: present, old.bytes, keychain) }
    } catch {
      throw Failure(ImportPlan.path(item.identity), error)
    }
  }

  /// The item stays the one it was: its flags, its date of creation and what the import does not name.
  private func replace(
    _ id: ItemID, with item: Item, _ bytes: borrowing SecretBytes, _ keychain: KeychainStore
  ) throws(StoreError) {
    let copy: SecretBytes
    do throws(SecretMemoryError) { copy = try SecretBytes(copying: bytes) } catch { throw .outOfMemory }
    let kept = Kept(copy)
    try keychain.rewrite(id, readingSecret: false) { (stored, secret) throws(StoreError) in
      stored.attributes.merge(item.attributes) { $1 }
      stored.label = item.label ?? stored.label
      stored.modified = item.modified
      do throws(SecretMemoryError) { secret = try SecretBytes(copying: kept.bytes) } catch {
        throw .outOfMemory
      }
    }
  }

  private final class Kept: Sendable {
    let bytes: SecretBytes

    init(_ bytes: consuming SecretBytes) {
      self.bytes = bytes
    }
  }
}
