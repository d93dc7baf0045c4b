import Crypto
import GRDB
import Glibc
import Model
import SecretMemory
import Store

/// An open vault. Used by one thread at a time.
final class Session {
  let directory: VaultDirectory
  let connection: Connection
  let ballast: Ballast
  let header: VaultHeader
  let keys: VaultKeys
  let classKeys: ClassKeyring
  private let known = KnownFacts()
  var anchor: Anchor
  /// The database's `data_version` when the items were last told.
  var toldVersion: UInt64?
  /// Items that were read on opening and not told yet.
  var untold: [Item]?
  /// Why nothing may be written; nil: the vault is as it should be.
  var distrust: String?
  var damaged: [ItemKey] = []
  /// What went wrong beside the vault itself.
  var anchorError: StoreError?

  init(opening place: VaultDirectory) throws(StoreError) {
    directory = place
    ballast = Ballast(directory: place)
    try VaultFactory.makeIfMissing(place)
    let source = KeyFileSource(bytes: try place.fetchKey())
    try DatabaseHeader.check(place)
    connection = try Self.connect(place, ballast)
    let (header, keys) = try connection.read { database in
      let header = try Schema.check(database, place.database)
      let master = try Schema.unlock(database, header, source)
      return (header, try VaultKeys(master: master, store: header.store))
    }
    (self.header, self.keys) = (header, keys)
    classKeys = ClassKeyring(keys, place)
    anchor = try Anchor(place.anchor(store: keys.store), keys)
    untold = try load()
    ballast.restore()
  }

  /// On a full disk not even SQLite's shared memory can be made without giving up the ballast.
  private static func connect(_ place: VaultDirectory, _ ballast: Ballast) throws(StoreError) -> Connection {
    do {
      let connection = try Connection(place.database)
      try connection.read { _ = try Connection.dataVersion($0) }
      return connection
    } catch .noSpace where ballast.giveUp() {
      return try Connection(place.database)
    }
  }
}

// MARK: - Reading

extension Session {
  func items() throws(StoreError) -> [Item] {
    if let items = untold, try version() == toldVersion {
      untold = nil
      return items
    }
    return try load()
  }

  func refresh() throws(StoreError) -> [Item]? {
    try version() == toldVersion ? nil : try load()
  }

  func secret(of id: ItemID) throws(StoreError) -> SecretBytes {
    guard let key = ItemKey(id) else { throw .notFound }
    var secret: SecretBytes?
    try connection.run { secret = try secrets($0).fetch(key) }
    guard let secret else { throw .notFound }
    return secret
  }

  func room() throws(StoreError) -> DiskRoom {
    let room = try directory.room()
    return DiskRoom(
      blockSize: UInt64(room.f_frsize), blocks: UInt64(room.f_blocks), freeBlocks: UInt64(room.f_bfree),
      availableBlocks: UInt64(room.f_bavail))
  }

  func items(_ database: Database) -> ItemTable {
    ItemTable(database: database, keys: keys)
  }

  func secrets(_ database: Database) -> SecretTable {
    SecretTable(database: database, keys: keys, classKeys: classKeys, known: known)
  }

  private func version() throws(StoreError) -> UInt64 {
    try connection.run { try Connection.dataVersion($0) }
  }

  /// Reads all items and checks that they add up.
  private func load() throws(StoreError) -> [Item] {
    // Before the vault, which others advance first: read later, the anchor could be the newer one.
    try? anchor.reload()
    let (version, census, manifest) = try connection.read { database in
      // The first read fixes what the transaction sees, and so what the version stands for.
      let manifest = try Manifest.fetchIfWhole(database, keys, header)
      let census = try items(database).census(expecting: manifest?.count ?? 0)
      return (try Connection.dataVersion(database), census, manifest)
    }
    toldVersion = version
    untold = nil
    damaged = census.damaged
    judge(census, manifest)
    return census.items
  }
}
