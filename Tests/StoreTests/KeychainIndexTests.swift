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

  @Test func latestChangeIsThatOfTheItemsThatAreThere() {
    func item(_ id: String, _ service: ExactString, _ seconds: Int64) -> Item {
      var item = Self.item(id, .generic(service: service, account: ExactString(id)))
      item.modified = Timestamp(seconds: seconds)
      return item
    }
    var index = KeychainIndex([item("1", "x", 10), item("2", "x", 20), item("3", "y", 30)])
    func times() -> [Int64?] {
      ["x", "y", nil].map { index.latestChange(in: $0, of: .generic)?.seconds }
    }
    #expect(times() == [20, 30, 30])
    index.insert(item("1", "x", 40))
    #expect(times() == [40, 30, 40])
    // The latest becomes an older one, moves, and goes.
    index.insert(item("1", "x", 5))
    #expect(times() == [20, 30, 30])
    index.insert(item("3", "x", 30))
    #expect(times() == [30, nil, 30])
    index.remove(ItemID(rawValue: "3"))
    #expect(times() == [20, nil, 20])
    #expect(index.latestChange(in: nil, of: .internet) == nil)
  }

  @Test func latestChangeOfEveryKindOfIdentity() {
    var internet = InternetIdentity(server: "s", account: "a")
    func time(_ identity: ItemIdentity) -> Int64? {
      var item = Self.item("1", identity)
      item.modified = Timestamp(seconds: 7)
      var index = KeychainIndex([item])
      return index.latestChange(in: identity.folder, of: identity.itemClass)?.seconds
    }
    #expect(time(.internet(internet)) == 7)
    internet.domain = "d"
    internet.protocol = "https"
    internet.authenticationType = "form"
    internet.path = "/p"
    internet.port = 8443
    #expect(time(.internet(internet)) == 7)
    #expect(time(.generic(service: "s", account: "")) == 7 && time(.other(label: "l")) == 7)
  }

  @Test func latestChangeAfterAnItemWasReplacedByALaterOne() {
    var (first, second) = (
      Self.item("1", .generic(service: "x", account: "a")),
      Self.item("2", .generic(service: "x", account: "b"))
    )
    first.modified = Timestamp(seconds: 1)
    second.modified = Timestamp(seconds: 2)
    var index = KeychainIndex([first, second])
    #expect(index.latestChange(in: "x", of: .generic)?.seconds == 2)
    second.modified = Timestamp(seconds: 3)
    index.insert(second)
    first.modified = Timestamp(seconds: 4)
    index.insert(first)
    #expect(index.latestChange(in: "x", of: .generic)?.seconds == 4)
    index.remove(first.id)
    #expect(index.latestChange(in: nil, of: .generic)?.seconds == 3)
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

/// The packed form of items.
@Suite struct PackedItemTests {
  @Test func itemsComeBackAsTheyWere() {
    var full = KeychainSamples.full()
    full.id = ItemID(rawValue: "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d")
    (full.size, full.isSealed, full.collection) = (1 << 40, true, "login")
    full.otpauth = FurtherSecret(size: 77, modified: Timestamp(seconds: -1, nanoseconds: 5))
    var plain = KeychainSamples.generic("", "")
    plain.id = ItemID(rawValue: "/org/freedesktop/secrets/collection/a/1")
    var other = KeychainSamples.generic("")
    other.identity = .other(label: ExactString(String(repeating: "é", count: 300)))
    let upper = Item(
      id: ItemID(rawValue: full.id.rawValue.uppercased()), identity: full.identity, created: full.created,
      modified: full.modified)
    for item in [full, plain, other, upper] {
      let packed = PackedItem(item)
      #expect(packed.item == item && packed.id == item.id && packed.identity == item.identity)
      #expect(packed.has(PackedKey(item.id)) && packed.has(PackedKey(item.identity)))
      #expect(packed == PackedItem(packed.item))
    }
    #expect(!PackedItem(full).has(PackedKey(upper.id)) && !PackedItem(plain).has(PackedKey(full.identity)))
  }

  /// Beside dictionaries of values, which do the same.
  @Test(arguments: 0..<3) func indexIsThatOfValues(_ seed: Int) {
    var (index, values) = (KeychainIndex(), [ItemID: Item]())
    for step in 0..<3_000 {
      let number = (step &* 7919 &+ seed &* 104_729) % 211
      var item = KeychainSamples.generic(ExactString("s\(step % (7 + seed))"), ExactString("a\(step % 13)"))
      if step % 5 == 0 { item.identity = .other(label: ExactString("l\(step % 3)")) }
      item.id = ItemID(rawValue: "\(number)")
      item.size = step
      if step % 3 == 0 {
        #expect(index.remove(item.id) == values.removeValue(forKey: item.id))
      } else {
        #expect(index.insert(item) == values.updateValue(item, forKey: item.id))
      }
      guard step % 50 == 0 else { continue }
      #expect(Set(index.all) == Set(values.values) && index.count == values.count)
      #expect(values.values.allSatisfy { index[$0.id] == $0 && index[$0.identity].contains($0) })
      for itemClass in ItemClass.allCases {
        let items = values.values.filter { $0.identity.itemClass == itemClass }
        #expect(Set(index.folders(of: itemClass)) == Set(items.map(\.identity.folder)))
        for (folder, items) in Dictionary(grouping: items, by: \.identity.folder) {
          #expect(Set(index.items(in: folder, of: itemClass)) == Set(items))
          #expect(index.countOfItems(in: folder, of: itemClass) == items.count)
        }
      }
    }
  }
}
