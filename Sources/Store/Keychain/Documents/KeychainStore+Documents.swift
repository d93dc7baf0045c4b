public import Model
public import SecretMemory

/// A change of a sealed document, which is made together with changes of items.
public struct DocumentChange: Sendable {
  /// The document as it was read; nil: it is new.
  public var previous: SealedDocument?
  /// The name that it has from then on.
  public var name: ExactString
  /// All of its properties.
  public var properties: [ExactString: [UInt8]]
  /// The time that it gets.
  public var modified: Timestamp

  /// - Parameters:
  ///   - previous: the document as it was read; nil: it is new.
  ///   - name: the name that it has from then on.
  ///   - properties: all of its properties.
  ///   - modified: the time that it gets.
  public init(
    of previous: SealedDocument? = nil, name: ExactString, properties: [ExactString: [UInt8]],
    modified: Timestamp = .now
  ) {
    (self.previous, self.name) = (previous, name)
    (self.properties, self.modified) = (properties, modified)
  }
}

// Sealed documents. No rule guards them: they hold names, and what they refer to is guarded.
extension KeychainStore {
  /// Whether the keychain keeps sealed documents: it authenticates what it holds, and changes it in transactions.
  public nonisolated var keepsDocuments: Bool { engine.authenticatesItems && engine.batches != nil }

  /// The documents whose names begin with `prefix`, in no particular order; none of a keychain that keeps none.
  ///
  /// - Throws: what reading the keychain throws.
  public nonisolated func documents(below prefix: String) throws(StoreError) -> [SealedDocument] {
    guard keepsDocuments else { return [] }
    return try read { index in
      index.documentItems.values.filter { $0.identity.documentName?.string.hasPrefix(prefix) == true }
    }.compactMap { SealedDocument($0) }
  }

  /// The document of a name; nil: there is none.
  ///
  /// - Throws: what reading the keychain throws.
  public nonisolated func document(_ name: ExactString) throws(StoreError) -> SealedDocument? {
    guard keepsDocuments else { return nil }
    if let lookup { return try lookup.item(with: .document(name)).flatMap { SealedDocument($0) } }
    return try read { $0.documentItems[name] }.flatMap { SealedDocument($0) }
  }

  /// The document that an item holds; nil: it is none's. - Throws: what reading the keychain throws.
  public nonisolated func document(_ id: ItemID) throws(StoreError) -> SealedDocument? {
    guard keepsDocuments else { return nil }
    return try read { $0.hiddenItem(id) }.flatMap { SealedDocument($0) }
  }

  /// The versions of a document, and of those of its name that were removed, the oldest first; empty where none are kept.
  ///
  /// - Throws: as `versions(of:)`.
  public nonisolated func versions(ofDocument name: ExactString) throws(StoreError) -> [ItemVersion] {
    guard keepsDocuments, engine.history != nil else { return [] }
    return try versions(of: .document(name))
  }

  /// The text of a document, also of a version of one. - Throws: `notFound`, `locked`, `damaged`, `unreachable`, `outOfMemory`.
  public nonisolated func text(of document: SealedDocument) throws(StoreError) -> SecretBytes {
    defer { wipeStack() }
    return try engine.secret(of: document.id)
  }

  /// Changes documents and items in one transaction. The secrets are those of `changes`, then the documents' texts.
  ///
  /// `origin`: of the items' changes. `removed`: documents that go first, so that another one may get the name.
  /// - Throws: as `apply`; `interrupted` where another process has changed a document since it was read; `tooLarge`.
  public nonisolated func apply(
    _ changes: [ItemChange] = [], _ permits: [ItemID: Permit] = [:], keeping documents: [DocumentChange],
    removing removed: [SealedDocument] = [], origin: Change.Origin = .local,
    secret: (Int) throws(StoreError) -> SecretBytes
  ) throws(StoreError) {
    try requireDocuments()
    var checked = try checked(changes, permits)
    checked = removed.map { .remove($0.id) } + checked + documents.map(\.itemChange)
    try apply(checked, origin: origin) { (position) throws(StoreError) in
      let index = position &- removed.count
      let content = try secret(index)
      guard index < changes.count || content.count <= SealedDocument.limit else {
        throw .tooLarge(limit: SealedDocument.limit)
      }
      return content
    }
  }

  /// Replaces what is computed of a document, which publishes nothing. It does nothing where the document was changed since it
  /// was read, or another process serves the keychain, which does it itself.
  ///
  /// - Throws: `locked`, `readOnly`, `noSpace`.
  public nonisolated func keep(
    derived: [ExactString: [UInt8]], of document: SealedDocument
  ) throws(StoreError) {
    guard keepsDocuments, !mayBlock, engine.locking.lockState == .open else { return }
    do throws(StoreError) {
      _ = try change { () throws(StoreError) in
        try engine.update([document.id]) { (item) throws(StoreError) in
          guard SealedDocument(item) == document else { throw .interrupted }
          item.attributes.merge(derived) { _, new in new }
        }
      } note: { store, items in
        for item in items { store.note(item, kind: .attributes) }
      }
    } catch {
      guard error == .interrupted || error == .notFound else { throw error }
    }
  }

  /// Deletes documents; nothing else goes with them.
  public nonisolated func remove(_ documents: [SealedDocument]) throws(StoreError) {
    try requireDocuments()
    try load()
    let ids = documents.map(\.id)
    try change { () throws(StoreError) in
      try engine.remove(ids)
    } note: { store, _ in
      for id in ids { store.noteRemoval(of: id) }
    }
  }

  /// - Throws: `unsupported` for a keychain that keeps no documents.
  public nonisolated func requireDocuments() throws(StoreError) {
    guard keepsDocuments else {
      throw .unsupported(
        reason: "views are kept in a vault; with `keychain=vault` (`keyhole migrate`) there can be some")
    }
  }

  /// The secret of an item for the length of a view, which is kept beside it and shown in its place: no program gets it.
  ///
  /// - Throws: `accessDenied` for an item with a password of its own, and where another process decides who gets secrets.
  package nonisolated func secretToMeasure(_ item: Item) throws(StoreError) -> SecretBytes {
    guard !isDecidedElsewhere, !item.access.needsPassword else {
      throw .accessDenied(reason: "only the process that serves the keychain measures secrets")
    }
    guard engine.locking.isAccessible(item) else { throw .locked }
    defer { wipeStack() }
    return try engine.secret(of: item.id)
  }

  nonisolated func isDocument(_ id: ItemID) throws(StoreError) -> Bool {
    try read { $0[id] == nil && $0.hiddenItem(id)?.identity.isDocument == true }
  }
}

extension DocumentChange {
  var itemChange: ItemChange {
    guard let previous else {
      var item = Item(
        id: ItemID(rawValue: ""), identity: .document(name), created: modified, modified: modified)
      (item.accessibility, item.attributes) = (.afterFirstUnlock, properties)
      return .add(item)
    }
    return .rewrite(previous.id) { [self] (item) throws(StoreError) in
      guard SealedDocument(item)?.isUnchanged(since: previous) == true else { throw .interrupted }
      (item.identity, item.attributes, item.modified) = (.document(name), properties, modified)
    }
  }
}
