package import Formats
import Model
import SecretServiceProtocol
import Store

// Collections and aliases in an export.

extension FurtherCollections {
  /// Those that an export keeps.
  var exported: ServiceCollections {
    var all = ServiceCollections()
    for (name, entry) in entries {
      all.entries[name] = ServiceCollections.Entry(label: entry.label, created: entry.created)
    }
    if let loginLabel {
      all.entries[ServiceObject.Collection.login.name] = ServiceCollections.Entry(label: loginLabel)
    }
    for (alias, name) in aliases { all.aliases[alias] = name ?? "" }
    return all
  }

  /// Adds those of an export. `replaces`: labels and aliases that are there already become those of the export.
  ///
  /// - Throws: `invalid`, `notSupported` and `tooMany` for what no client could have made.
  mutating func add(_ other: ServiceCollections, replacing replaces: Bool) throws(ProtocolError) {
    for (name, entry) in other.entries {
      if let label = entry.label { try Self.check(label: label) }
      switch ServiceObject.Collection(name: name) {
      case .login?: if replaces || loginLabel == nil { loginLabel = entry.label }
      case .further?:
        guard replaces || entries[name] == nil else { continue }
        guard entries.count < Self.most || entries[name] != nil else {
          throw .tooMany("there are \(Self.most) collections already")
        }
        entries[name] = Entry(
          label: entry.label ?? name, created: entries[name]?.created ?? entry.created ?? 0)
      case .session?, nil: throw .invalid("a collection can't have the name `\(name)`")
      }
    }
    for (alias, name) in other.aliases where replaces || aliases[alias] == nil {
      let collection = ServiceObject.Collection(name: name)
      guard name.isEmpty || collection != nil else { throw .invalid("there can be no collection `\(name)`") }
      try set(alias, to: collection)
    }
  }
}

extension Stores {
  /// The collections of the Secret Service; nothing where there are none, or the keychain keeps none.
  ///
  /// - Throws: what reading the keychain throws.
  func serviceCollections() throws(StoreError) -> ServiceCollections {
    guard let keychain, keychain.keepsDocuments else { return ServiceCollections() }
    return try keychain.furtherCollections().exported
  }

  /// Adds those of an export to the vault's, in one step.
  ///
  /// - Throws: `Failure`.
  package func add(_ collections: ServiceCollections, replacing replaces: Bool) throws {
    guard !collections.isEmpty else { return }
    let result: Result<FurtherCollections, ProtocolError>
    do throws(StoreError) {
      guard let keychain else { throw .notFound }
      guard keychain.keepsDocuments else { throw .unsupported(reason: "they are kept in a vault only") }
      result = try keychain.changeCollections { (present) throws(ProtocolError) in
        try present.add(collections, replacing: replaces)
      }
    } catch {
      throw Self.failure(error.message)
    }
    if case .failure(let error) = result { throw Self.failure(error.message) }
  }

  private static func failure(_ reason: String) -> Failure {
    Failure(nil, "all was imported but the collections of the Secret Service: \(reason)")
  }
}
