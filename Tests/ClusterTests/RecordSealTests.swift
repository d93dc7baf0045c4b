import ClusterRecords
import Crypto
import Model
import SecretMemory
import Store
import StoreConformance
import Testing
import VaultRecords

/// Sealed values open in their place only.
@Suite struct RecordSealTests {
  private func keys(_ store: ItemKey, _ master: SymmetricKey, epoch: UInt32 = 1) throws -> ClusterKeyring {
    let keys = ClusterKeyring(store: store)
    try keys.add(master, epoch: epoch)
    try keys.setRing(KeyRing(index: master, oldest: epoch))
    return keys
  }

  @Test func aRecordOpensInItsPlaceOnly() throws {
    let (store, master) = (ItemKey.random(), SymmetricKey(size: .bits256))
    let keys = try keys(store, master)
    let place = RecordPlace(.entry, Array("a".utf8), version: 7)
    let content: [UInt8] = [1, 2, 3]
    let sealed = try RecordSeal.seal(content, at: place, for: .settings, keys)
    #expect(try RecordSeal.open(sealed, at: place, for: .settings, keys).content == content)
    var others = [RecordPlace](repeating: place, count: 4)
    others[0].key = Array("b".utf8)
    others[1].version = 8
    others[2].version = 6
    others[3].kind = .head
    for other in others {
      expect(.damaged(what: "")) { _ = try RecordSeal.open(sealed, at: other, for: .settings, keys) }
    }
    expect(.damaged(what: "")) { _ = try RecordSeal.open(sealed, at: place, for: .items, keys) }
    let otherStore = try self.keys(.random(), master)
    expect(.damaged(what: "")) { _ = try RecordSeal.open(sealed, at: place, for: .settings, otherStore) }
    // An epoch that is over, and one that is not known yet.
    let later = try self.keys(store, master, epoch: 2)
    expect(.damaged(what: "")) { _ = try RecordSeal.open(sealed, at: place, for: .settings, later) }
    var relabelled = sealed
    relabelled[4] = 2
    expect(.damaged(what: "")) { _ = try RecordSeal.open(relabelled, at: place, for: .settings, later) }
    expect(.locked) { _ = try RecordSeal.open(relabelled, at: place, for: .settings, keys) }
    for count in 0..<sealed.count {
      #expect(throws: StoreError.self) {
        _ = try RecordSeal.open(Array(sealed.prefix(count)), at: place, for: .settings, keys)
      }
    }
  }

  @Test func aKeyOfASecretOpensForItsRulesOnly() throws {
    let keys = try keys(.random(), SymmetricKey(size: .bits256))
    let id = ItemKey.random()
    var item = KeychainSamples.generic("a")
    item.access = [.userPresence]
    let record = ItemRecord(item: item, secretRevision: 1)
    let key = try SecretSeal.makeKey()
    let sealed = try SecretSeal.seal(key: key, of: id, part: 0, record, keys)
    _ = try SecretSeal.openKey(sealed, of: id, part: 0, record, keys)
    var others = [ItemRecord](repeating: record, count: 3)
    others[0].item.access = []
    others[1].item.accessibility = .afterFirstUnlock
    others[2].item.programs = "allow *"
    for other in others {
      expect(.damaged(what: "")) { _ = try SecretSeal.openKey(sealed, of: id, part: 0, other, keys) }
    }
    expect(.damaged(what: "")) { _ = try SecretSeal.openKey(sealed, of: id, part: 1, record, keys) }
    expect(.damaged(what: "")) { _ = try SecretSeal.openKey(sealed, of: .random(), part: 0, record, keys) }
  }

  @Test(arguments: SettingSamples.all)
  func settingsOfEveryTypeReadAsTheyWereWritten(_ name: ExactString, _ value: SettingValue) throws {
    let record = SettingRecord(name: name, value: value, modified: KeychainSamples.time)
    let bytes = try record.encoded()
    #expect(try SettingRecord(bytes.span) == record)
    for count in 0..<min(bytes.count, 200) {
      #expect(throws: StoreError.self) { _ = try SettingRecord(Array(bytes.prefix(count)).span) }
    }
  }
}
