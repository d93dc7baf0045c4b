import Cluster
import ClusterRecords
import Crypto
import EtcdClient
import Model
import Testing
import VaultRecords

/// The file of the copy of a keychain: it opens as it was stored, and in no other form.
@Suite struct OfflineRecordTests {
  private let key = SymmetricKey(size: .bits256)
  private let store = ItemKey.random()
  private let device = ItemKey.random()

  private func record() -> OfflineRecord {
    var head = CollectionHead()
    head.note(.random())
    (head.count, head.journal, head.keepsVersions) = (2, [.random()], false)
    let entries = (1...2).map { number in
      CollectionRecord.Entry(
        id: .random(), state: EntryState(version: UInt64(number), operation: .random()),
        content: Array("entry \(number)".utf8))
    }
    let items = CollectionRecord(head: head, version: 7, epoch: 2, modified: 99, entries: entries)
    let keys = KeyRecords(log: [[1, 2], [3]], slot: [4], ring: [5, 6], ringVersion: 3)
    let secrets: [SecretPlace: [UInt8]] = [
      SecretPlace(item: entries[0].id, revision: 4): [7, 8, 9],
      SecretPlace(item: entries[0].id, part: 1, revision: 5): [],
    ]
    return OfflineRecord(
      cluster: 0xC1, time: Timestamp(seconds: 1_700_000_000, nanoseconds: 5), keys: keys, items: items,
      secrets: secrets)
  }

  private func open(_ bytes: [UInt8]) throws -> OfflineRecord {
    try OfflineRecord(opening: bytes, key, of: store, device)
  }

  @Test func opensAsItWasStored() throws {
    let record = record()
    #expect(try open(record.sealed(key, of: store, device)) == record)
  }

  @Test func opensInNoOtherFormNorForAnother() throws {
    let bytes = try record().sealed(key, of: store, device)
    expect(.damaged(what: "")) { _ = try open([]) }
    for length in 0..<bytes.count {
      expect(.damaged(what: ""), "cut to \(length)") { _ = try open(Array(bytes.prefix(length))) }
    }
    for index in bytes.indices {
      var changed = bytes
      changed[index] ^= 1
      expect(.damaged(what: ""), "changed at \(index)") { _ = try open(changed) }
    }
    expect(.damaged(what: "")) { _ = try open(bytes + [0]) }
    expect(.damaged(what: "")) {
      _ = try OfflineRecord(opening: bytes, SymmetricKey(size: .bits256), of: store, device)
    }
    expect(.damaged(what: "")) { _ = try OfflineRecord(opening: bytes, key, of: .random(), device) }
    expect(.damaged(what: "")) { _ = try OfflineRecord(opening: bytes, key, of: store, .random()) }
  }

  @Test func hasALimit() throws {
    var record = record()
    record.secrets[SecretPlace(item: .random(), revision: 1)] = [UInt8](
      repeating: 0, count: OfflineRecord.largest)
    expect(.tooLarge(limit: 0)) { _ = try record.sealed(key, of: store, device) }
  }
}
