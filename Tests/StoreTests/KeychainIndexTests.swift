import Model
import StoreConformance
import Testing

@testable import Store

@Suite struct KeychainIndexTests {
  private static func item(_ id: String, _ identity: ItemIdentity, created: Int64 = 0) -> Item {
    Item(
      id: ItemID(rawValue: id), identity: identity, created: Timestamp(seconds: created),
      modified: Timestamp(seconds: 0))
  }

  @Test func oldestOfOneIdentityComesFirst() {
    let identity = ItemIdentity.other(label: "same")
    let index = KeychainIndex([
      Self.item("c", identity, created: 2), Self.item("b", identity, created: 1),
      Self.item("a", identity, created: 2),
    ])
    #expect(index[identity].map(\.id.rawValue) == ["b", "a", "c"])
    #expect(index.items(in: "same", of: .other).count == 3)
  }

  @Test func foldersBelongToTheirClass() {
    let index = KeychainIndex([
      Self.item("1", .generic(service: "x", account: "")),
      Self.item("2", .internet(InternetIdentity(server: "y"))), Self.item("3", .other(label: "z")),
    ])
    #expect(ItemClass.allCases.map { index.folders(of: $0) } == [["x"], ["y"], ["z"]])
    #expect(index.hasFolder("x", of: .generic) && !index.hasFolder("x", of: .internet))
    #expect(index.all.count == 3)
  }

  @Test func folderGoesWithItsLastItem() {
    var index = KeychainIndex([
      Self.item("1", .generic(service: "x", account: "a")),
      Self.item("2", .generic(service: "x", account: "b")),
    ])
    #expect(index.remove(ItemID(rawValue: "1"))?.id.rawValue == "1")
    #expect(index.hasFolder("x", of: .generic) && index.remove(ItemID(rawValue: "1")) == nil)
    index.insert(Self.item("2", .generic(service: "y", account: "b")))
    #expect(index.folders(of: .generic) == ["y"] && index.count == 1)
  }

  @Test func sameSizeAndTimeIsAChangeOfAttributesOnly() {
    let old = Self.item("1", .generic(service: "x", account: ""))
    var (label, time, size) = (old, old, old)
    label.label = "new"
    time.modified.seconds = 1
    size.size = 1
    let before = KeychainIndex([old])
    #expect(KeychainIndex([old]).changes(since: before) == [])
    #expect(KeychainIndex([label]).changes(since: before).map(\.kind) == [.attributes])
    #expect(KeychainIndex([time]).changes(since: before).map(\.kind) == [.modified])
    #expect(KeychainIndex([size]).changes(since: before).map(\.kind) == [.modified])
    #expect(KeychainIndex([]).changes(since: before).map(\.kind) == [.deleted])
    #expect(before.changes(since: KeychainIndex([])).map(\.kind) == [.created])
  }
}
