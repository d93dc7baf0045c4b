import Formats
package import Model
package import SecretMemory
import Store
import Tree

/// The items that other programs get and store through a helper. Every access is one of this process: its flags and rules are
/// asked as for `keyhole get`.
package struct CredentialItems {
  private let session: TreeSession
  private let keychain: KeychainStore

  /// - Throws: `Failure` where no keychain can be opened.
  package init() throws {
    session = try TreeSession(for: TreePath("keychain"))
    guard let keychain = session.stores.keychain else {
      throw Failure("keychain", "there is no keychain; `keyhole config keychain` says which one is used")
    }
    self.keychain = keychain
  }

  private static func path(of identity: ItemIdentity) -> TreePath { TreePath(FileTree.path(of: identity)) }

  /// nil: there is none.
  package func item(_ identity: ItemIdentity) throws -> Item? {
    try session.attempt(Self.path(of: identity)) { () throws(StoreError) in
      try keychain.item(with: identity)
    }
  }

  /// The internet passwords of a server, by its exact name.
  package func items(ofServer server: ExactString) throws -> [Item] {
    try session.attempt(TreePath("keychain/internet")) { () throws(StoreError) in
      try keychain.read { $0.items(in: server, of: .internet) }
    }
  }

  /// Every internet password that meets a condition.
  package func internetItems(where isMeant: (Item) -> Bool) throws -> [Item] {
    try session.attempt(TreePath("keychain/internet")) { () throws(StoreError) in
      try keychain.read { index in index.all.filter { $0.identity.itemClass == .internet && isMeant($0) } }
    }
  }

  /// - Throws: `Failure` where rules or a person refuse it, and where it can't be read.
  package func secret(of item: Item) throws -> SecretBytes {
    let path = Self.path(of: item.identity)
    return try session.attempt(path) { () throws(StoreError) in
      let permit = try keychain.permission(for: item, to: .read, path: path.string, by: session.caller)
        .fetch()
      return try keychain.secret(of: item, permit)
    }
  }

  /// The secret of the item with an identity; nil: there is none.
  package func secret(_ identity: ItemIdentity) throws -> SecretBytes? {
    guard let item = try item(identity) else { return nil }
    return try secret(of: item)
  }

  /// Removes items; where the keychain keeps versions, `keyhole history` has them for a time.
  package func remove(_ items: [Item]) throws {
    guard let first = items.first else { return }
    try session.attempt(Self.path(of: first.identity)) { () throws(StoreError) in
      try keychain.remove(items.map(\.id))
    }
  }
}

// MARK: Storing

extension CredentialItems {
  /// The parts of a new item besides its identity and its secret.
  package struct Description {
    package var label: String?
    /// The schema of the program that the item is for, under which that program's own helper finds it.
    package var schema: ExactString?

    package init(label: String? = nil, schema: ExactString? = nil) {
      (self.label, self.schema) = (label, schema)
    }
  }

  /// Stores a secret: in the item that is there, whose attributes all stay, or in a new one. An equal secret is no change.
  ///
  /// - Throws: `Failure` where rules or a person refuse it, and where it can't be stored.
  package func store(
    _ secret: borrowing SecretBytes, as identity: ItemIdentity, _ description: Description
  ) throws {
    if let item = try item(identity) { return try replace(item, by: secret) }
    let path = Self.path(of: identity)
    var isThere = false
    let copy = try SecretBytes(copying: secret)
    try session.attempt(path) { () throws(StoreError) in
      let item = description.item(identity)
      let permit = try keychain.permission(forNew: item, path: path.string, by: session.caller).fetch()
      // Another process may have stored it meanwhile.
      do throws(StoreError) { try keychain.add(item, secret: copy, permit) } catch {
        guard error == .exists else { throw error }
        isThere = true
      }
    }
    session.stores.settleKeychain()
    if isThere, let item = try item(identity) { try replace(item, by: secret) }
  }

  /// The same for an item that is there; `isTouched`: also an equal secret makes it the one that was stored last.
  package func replace(_ item: Item, by secret: borrowing SecretBytes, isTouched: Bool = false) throws {
    let present = try self.secret(of: item)
    let isEqual = present == secret
    guard isTouched || !isEqual else { return }
    let path = Self.path(of: item.identity)
    let copy = try SecretBytes(copying: secret)
    try session.attempt(path) { () throws(StoreError) in
      let permit = try keychain.permission(
        for: item, to: .write, path: path.string, by: session.caller
      ).fetch()
      try keychain.rewrite(item.id, readingSecret: false, permit) { (item, stored) throws(StoreError) in
        do { stored = try SecretBytes(copying: copy) } catch { throw .outOfMemory }
        item.modified = .now
      }
    }
  }
}

extension CredentialItems.Description {
  fileprivate func item(_ identity: ItemIdentity) -> Item {
    let now = Timestamp.now
    var item = Item(
      id: ItemID(rawValue: ""), identity: identity, label: label.map { ExactString($0) }, created: now,
      modified: now)
    if let schema { item.attributes[SecretSchema.attribute] = Array(schema.utf8) }
    return item
  }
}

extension Item {
  /// The schema that the item names; nil: none.
  var schema: ExactString? { attributes[SecretSchema.attribute].flatMap { ExactString(utf8: $0) } }
}

extension Failure {
  /// Of a message of a program, or of an item, that the protocol does not allow.
  init(_ subject: String?, _ error: FormatError) { self.init(subject, error.reason, error.kind) }
}

/// Runs a part of a protocol. - Throws: `Failure` with the subject.
func reading<Value: ~Copyable>(
  _ subject: String?, _ body: () throws(FormatError) -> Value
) throws -> Value {
  do throws(FormatError) { return try body() } catch { throw Failure(subject, error) }
}
