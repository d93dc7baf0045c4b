public import Model
public import Store
import VaultDatabase
import VaultRecords

extension VaultEngine: PagingKeychain, VerifiableKeychain {
  /// The vault itself, as long as it has many items and not all of them were read.
  public var paging: (any PagingKeychain)? {
    vault.use { vault in vault.session?.isSlowToRead == true ? self : nil }
  }

  /// Begins to read all items by another connection. - Throws: `locked` for a vault that was never unlocked.
  public func beginReading() throws(StoreError) -> any ItemReading {
    VaultPages(self, try snapshot(keepingRows: true))
  }

  /// The vault itself where a change was read by the hash tree alone since all rows were compared with it.
  public var verification: (any VerifiableKeychain)? {
    vault.use { vault in vault.session?.isVerificationDue == true ? self : nil }
  }

  /// Compares all rows with the hash tree, and opens the metadata of each, by another connection.
  ///
  /// Afterwards `trust` and `problems` say what is wrong, and `changes` reports everything.
  public func verify() throws(StoreError) {
    let snapshot = try snapshot(keepingRows: false)
    try snapshot.reader.use { reader throws(StoreError) in try reader.readAll() }
    try take(snapshot) { session, reader throws(StoreError) in try session.takeVerification(reader) }
  }

  private func snapshot(keepingRows: Bool) throws(StoreError) -> VaultSnapshot {
    let (connections, keys, session) = try withSession { session throws(StoreError) in
      do { return (session.readerConnection, try session.keys.copyWithoutMasterKeys(), session) } catch {
        throw StoreError(vault: error, errno: 0)
      }
    }
    return VaultSnapshot(
      reader: Locked(try SnapshotReader(connections, keys, keepingRows: keepingRows)),
      session: Locked(session))
  }

  /// Runs `body` with the session, if it is still the one that was read.
  fileprivate func take<Result>(
    _ snapshot: VaultSnapshot, _ body: (Session, SnapshotReader) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    try withSession { session throws(StoreError) in
      guard snapshot.session.use({ $0 === session }) else { throw .interrupted }
      return try snapshot.reader.use { reader throws(StoreError) in try body(session, reader) }
    }
  }
}

/// One state of a vault, while it is read, and whose it is.
struct VaultSnapshot {
  let reader: Locked<SnapshotReader>
  let session: Locked<Session>
}

/// The items of a vault by pages.
private final class VaultPages: ItemReading {
  private let engine: VaultEngine
  private let snapshot: VaultSnapshot

  init(_ engine: VaultEngine, _ snapshot: VaultSnapshot) {
    (self.engine, self.snapshot) = (engine, snapshot)
  }

  func next() throws(StoreError) -> [Item] {
    var items: [Item] = []
    // Some pages may have no item that is shown.
    while items.isEmpty {
      let page = try snapshot.reader.use { reader throws(StoreError) in
        try reader.next(SnapshotReader.page)
      }
      guard !page.isEmpty else { break }
      items = page.filter(engine.isShown)
    }
    return items
  }

  func finish() throws(StoreError) -> ExternalChanges {
    try engine.take(snapshot) { session, reader throws(StoreError) in try session.take(reader) }
      .mapItems(engine.shown)
  }
}
