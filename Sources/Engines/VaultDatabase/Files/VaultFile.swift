import Crypto
import GRDB
package import Model
import Platform
import SecretMemory
import Store
package import VaultRecords

/// The vault's database and its unsealed parts: all that is known of a vault before it is unlocked.
package final class VaultFile {
  package let directory: VaultDirectory
  package let connection: Connection
  /// As it was read last: another process may have upgraded the vault since.
  package private(set) var header: VaultHeader

  /// Makes the vault where there is none.
  package init(opening place: VaultDirectory) throws(StoreError) {
    directory = place
    try VaultFactory.makeIfMissing(place)
    try DatabaseHeader.check(place)
    connection = try Self.connect(place)
    header = try connection.read { try Schema.check($0, place.database) }
  }

  /// The vault that took the place of one that was open. None is made. - Throws: `unreachable` where there is none.
  package init(replacing place: VaultDirectory) throws(StoreError) {
    guard FileStamp(place.database) != nil else {
      throw .unreachable(reason: "\(place.database) was removed or moved away; put it back")
    }
    directory = place
    try DatabaseHeader.check(place)
    connection = try Self.connect(place)
    header = try connection.read { try Schema.check($0, place.database) }
  }

  /// On a full disk not even SQLite's shared memory can be made without giving up the reserve.
  private static func connect(_ place: VaultDirectory) throws(StoreError) -> Connection {
    do {
      return try checkedConnection(place)
    } catch {
      // SQLite says only that a file is missing: its log or its shared memory, which it can't make.
      if let shortage = error.isOutOfSpace ? error : DiskProbe.shortage(of: place.path) {
        guard place.reserve.giveUp() else { throw shortage }
        do throws(StoreError) { return try checkedConnection(place) } catch { throw shortage }
      }
      guard let refusal = DiskProbe.refusal(of: place.path) else { throw error }
      guard let copy = try? Connection(copying: place.database) else { throw refusal }
      return copy
    }
  }

  private static func checkedConnection(_ place: VaultDirectory) throws(StoreError) -> Connection {
    let connection = try Connection(place.database)
    try connection.read { _ = try Connection.dataVersion($0) }
    return connection
  }

  /// The ways to the master key as they are now: another process may have changed the passphrase.
  package func slots() throws(StoreError) -> [KeySlot] {
    try connection.read { database in
      header = try Schema.check(database, directory.database)
      return try KeySlot.fetchAll(database, header.format)
    }
  }

  /// The first of several slots whose key is that of the rest of the vault.
  ///
  /// - Throws: `notPermitted` where the slots were replaced meanwhile; `damaged` where there is none: a slot that was put back leads to a
  ///   master key that opens nothing.
  package func fitting(_ opened: [OpenedSlot]) throws(StoreError) -> OpenedSlot {
    guard header.format >= .two || opened.count != 1 else { return opened[0] }
    for slot in opened where try connection.read({ try fits(slot, $0) }) { return slot }
    // A change of the passphrase makes slots with other numbers.
    let present = Set(try slots().map(\.id))
    guard opened.contains(where: { present.contains($0.slot) }) else {
      throw .notPermitted(
        reason:
          "another command has changed the passphrase meanwhile; this one has changed nothing, try again")
    }
    throw .damaged(what: "the vault's key slot (an older slot was put back, or the manifest was edited)")
  }

  private func fits(_ slot: OpenedSlot, _ database: Database) throws -> Bool {
    let keys = try VaultKeys(slot.keys, header)
    if try Manifest.fetchIfWhole(database, keys) != nil { return true }
    // A damaged manifest leaves what can be read readable.
    return try ItemTable(database: database, keys: keys).opensAny()
  }
}
