public import Model
public import SecretMemory
import Synchronization

/// A document as it has to be when items have other names.
public final class FollowingDocument: Sendable {
  /// The document and its properties.
  public let change: DocumentChange
  private let text: SecretBytes

  /// `text`: the whole text of the document.
  public init(_ change: DocumentChange, _ text: consuming SecretBytes) {
    self.change = change
    self.text = text
  }

  /// A copy of the text. - Throws: `outOfMemory`.
  public func copyOfText() throws(StoreError) -> SecretBytes {
    do { return try SecretBytes(copying: text) } catch { throw .outOfMemory }
  }
}

/// Gives the documents that name items which get other names: pairs of the former identity and the new one.
public typealias RenameFollower =
  @Sendable (_ renames: [(from: ItemIdentity, to: ItemIdentity)]) throws(StoreError) -> [FollowingDocument]

// Documents name items. Where an item gets another name, they change in the same transaction.
extension KeychainStore {
  private static let mostAttempts = 32

  /// From now on documents follow the names of items. Not in a process that does not serve the keychain by itself.
  public nonisolated func followRenames(_ follower: @escaping RenameFollower) {
    renameFollower.withLock { $0 = follower }
  }

  /// Changes items together with the documents that follow their names; false: none does, and nothing is changed.
  nonisolated func updateFollowed(
    _ present: [Item], _ origin: Change.Origin, _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) -> Bool {
    guard keepsDocuments, remote == nil, let follower = renameFollower.withLock({ $0 }) else { return false }
    var renames: [(from: ItemIdentity, to: ItemIdentity)] = []
    for item in present {
      var changed = item
      try body(&changed)
      if changed.identity != item.identity { renames.append((item.identity, changed.identity)) }
    }
    guard !renames.isEmpty else { return false }
    for attempt in 1... {
      let documents = try follower(renames)
      if documents.isEmpty { return false }
      do throws(StoreError) {
        try update(present, origin, body, with: documents)
        return true
      } catch {
        // Another thread or process has changed a document meanwhile, which may not be known here yet.
        guard error == .interrupted, attempt < Self.mostAttempts else { throw error }
        try refresh()
      }
    }
    return false
  }

  private nonisolated func update(
    _ items: [Item], _ origin: Change.Origin, _ body: (inout Item) throws(StoreError) -> Void,
    with documents: [FollowingDocument]
  ) throws(StoreError) {
    try withoutActuallyEscaping(body) { (body) throws(StoreError) in
      let changes = items.map { ItemChange.update($0.id, body) }
      try apply(changes, keeping: documents.map(\.change), origin: origin) { (index) throws(StoreError) in
        try documents[index - changes.count].copyOfText()
      }
    }
  }
}
