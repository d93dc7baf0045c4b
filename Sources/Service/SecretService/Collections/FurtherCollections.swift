import Model
import SecretMemory
import SecretServiceProtocol
import Store

/// The collections that clients have made, the label that they have given `login`, and the aliases that they have set: one sealed
/// document of the vault.
///
/// A collection holds the items whose attribute ``Item/collectionAttribute`` is its name. One that the document does not have, but
/// an item names, is a collection too: an item may come back from a backup, an export or its history.
struct FurtherCollections: Equatable, Sendable {
  /// A collection that a client has made.
  struct Entry: Equatable, Sendable {
    var label: String
    /// In seconds since 1970.
    var created: Int64
  }

  /// The name of the document.
  static let document: ExactString = "secret-service/collections"
  /// So many collections, and so many aliases, at most.
  static let most = 256
  /// The label of `login`, where no client has given it another one.
  static let standardLabel = "Login"
  /// The length of a label, in bytes.
  static let longestLabel = 1024

  private static let (labels, dates, alias) = ("label/", "created/", "alias/")
  /// The value of an alias that names no collection.
  private static let nothing = "/"

  /// By their names.
  var entries: [String: Entry] = [:]
  /// The label of the collection `login`; nil: the standard one.
  var loginLabel: String?
  /// The names of collections by the aliases that differ from the standard; nil: the alias names no collection.
  var aliases: [String: String?] = [:]

  init() {}

  /// nil: there is no document, so no collections and the standard aliases.
  init(_ document: SealedDocument?) {
    for (name, value) in document?.properties ?? [:] {
      let (name, value) = (name.string, String(decoding: value, as: UTF8.self))
      if name == Self.labels + ServiceObject.Collection.login.name {
        loginLabel = value
      } else if let collection = Self.rest(of: name, after: Self.labels) {
        let created = document?.text(ExactString(Self.dates + collection)).flatMap { Int64($0) }
        entries[collection] = Entry(label: value, created: created ?? 0)
      } else if let alias = Self.rest(of: name, after: Self.alias) {
        aliases.updateValue(value == Self.nothing ? nil : value, forKey: alias)
      }
    }
  }

  /// The properties of the document.
  var properties: [ExactString: [UInt8]] {
    var properties: [ExactString: [UInt8]] = [:]
    if let loginLabel {
      properties[ExactString(Self.labels + ServiceObject.Collection.login.name)] = Array(loginLabel.utf8)
    }
    for (name, entry) in entries {
      properties[ExactString(Self.labels + name)] = Array(entry.label.utf8)
      properties[ExactString(Self.dates + name)] = Array("\(entry.created)".utf8)
    }
    for (alias, name) in aliases {
      properties[ExactString(Self.alias + alias)] = Array((name ?? Self.nothing).utf8)
    }
    return properties
  }

  private static func rest(of name: String, after prefix: String) -> String? {
    name.hasPrefix(prefix) ? String(name.dropFirst(prefix.count)) : nil
  }
}

extension FurtherCollections {
  /// The collections of all aliases. `isNamed`: whether an item names a collection that the document does not have.
  func allAliases(_ isNamed: (String) -> Bool) -> [String: ServiceObject.Collection] {
    var all = ServiceObject.Collection.standardAliases
    for (alias, name) in aliases {
      let collection = name.flatMap { ServiceObject.Collection(name: $0) }
      if case .further(let name)? = collection, entries[name] == nil, !isNamed(name) {
        // It went by another road than Delete.
        continue
      }
      all[alias] = collection
    }
    return all
  }

  /// Adds a collection, and returns its name. `named`: by items, beside those of the document.
  ///
  /// - Throws: `tooMany`, `invalid`.
  mutating func add(
    _ label: String, alias: String, _ named: Set<String>, at now: Int64
  ) throws(ProtocolError) -> String {
    try Self.check(label: label)
    guard entries.count < Self.most else { throw .tooMany("there are \(Self.most) collections already") }
    let base = ServiceObject.Collection.name(forLabel: label)
    let taken = Set(entries.keys).union(named).union(ServiceObject.Collection.standardAliases.keys)
    var (name, number) = (base, 2)
    while taken.contains(name) {
      name = "\(base)_\(number)"
      number += 1
    }
    entries[name] = Entry(label: label, created: now)
    if !alias.isEmpty { try set(alias, to: .further(name)) }
    return name
  }

  /// Removes a collection with its aliases. The alias `default` is the collection `login` again, so that clients store there.
  mutating func remove(_ name: String) {
    entries[name] = nil
    aliases = aliases.filter { $0.value != name }
  }

  /// - Throws: `tooMany`; `invalid` for a text that is no element of a path; `notSupported` for `login` and `session`, which are
  ///   always the collections of these names.
  mutating func set(_ alias: String, to collection: ServiceObject.Collection?) throws(ProtocolError) {
    guard ServiceObject.Collection.isName(alias) else {
      throw .invalid("an alias has letters, digits and `_`, at most \(ServiceObject.Collection.longestName)")
    }
    let standard = ServiceObject.Collection.standardAliases[alias]
    guard collection != standard else {
      aliases[alias] = nil
      return
    }
    guard alias != ServiceObject.Collection.login.name, alias != ServiceObject.Collection.session.name else {
      throw .notSupported("the alias `\(alias)` is always the collection of this name")
    }
    guard alias != "default" || collection != .session else {
      throw .notSupported(
        "`default` can't be the collection `session`, whose items are gone with the service")
    }
    guard aliases.count < Self.most || aliases[alias] != nil else {
      throw .tooMany("there are \(Self.most) aliases already")
    }
    aliases.updateValue(collection?.name, forKey: alias)
  }

  static func check(label: String) throws(ProtocolError) {
    guard label.utf8.count <= longestLabel else {
      throw .invalid("the label of a collection has at most \(longestLabel) bytes")
    }
  }
}

extension KeychainStore {
  /// The collections that clients have made. - Throws: `locked` for a keychain that was never unlocked; `damaged`, `unreachable`.
  nonisolated func furtherCollections() throws(StoreError) -> FurtherCollections {
    FurtherCollections(try document(FurtherCollections.document))
  }

  /// Changes the collections, and removes items with them, in one transaction.
  ///
  /// - Throws: `unsupported` for a keychain that is no vault; `locked`, `readOnly`, `noSpace`.
  nonisolated func changeCollections(
    removing items: [ItemID] = [],
    _ body: (inout FurtherCollections) throws(ProtocolError) -> Void
  ) throws(StoreError) -> Result<FurtherCollections, ProtocolError> {
    // Another process may change the document at the same time.
    for attempt in 1... {
      let document = try document(FurtherCollections.document)
      let present = FurtherCollections(document)
      var changed = present
      do throws(ProtocolError) { try body(&changed) } catch { return .failure(error) }
      guard changed != present || !items.isEmpty else { return .success(present) }
      let change = DocumentChange(
        of: document, name: FurtherCollections.document, properties: changed.properties)
      do throws(StoreError) {
        try apply(items.map { .remove($0) }, keeping: [change], origin: .indirect) { (_) throws(StoreError) in
          do { return try SecretBytes() } catch { throw .outOfMemory }
        }
        return .success(changed)
      } catch {
        guard error == .interrupted || error == .exists, attempt < 8 else { throw error }
      }
    }
    throw .interrupted
  }
}
