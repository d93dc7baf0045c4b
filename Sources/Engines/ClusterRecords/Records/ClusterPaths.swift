package import Model
package import VaultRecords

/// The keys of one store in a cluster: ASCII, below `/keyhole/1/STORE/`.
package struct ClusterPaths: Hashable, Sendable {
  /// The store's name.
  package let store: String

  /// - Throws: `invalidName` for what is not 1 to 64 letters, digits, `.`, `_` and `-`, or begins with a dot.
  package init(store: String) throws(StoreError) {
    let isPlain = store.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
        true
      default: false
      }
    }
    guard isPlain, (1...64).contains(store.utf8.count), !store.hasPrefix(".") else {
      throw .invalidName(
        reason: "the name of a store in a cluster is 1 to 64 letters, digits, “.”, “_” and “-”")
    }
    self.store = store
  }

  /// The beginning of all keys of the store.
  package var prefix: String { "/keyhole/1/\(store)/" }

  private func key(_ rest: String) -> [UInt8] { Array((prefix + rest).utf8) }

  /// The list of device and recovery keys, as entries that are signed one after the other.
  package var log: [UInt8] { key("log/") }
  package func log(_ position: UInt64) -> [UInt8] { log + ClusterPaths.digits(position) }

  /// The master key, sealed to a member.
  package func slot(_ member: ItemKey) -> [UInt8] { key("slot/") + ClusterPaths.digits(member) }
  package var slots: [UInt8] { key("slot/") }

  /// The keys of a device that wants to be a member.
  package func request(_ device: ItemKey) -> [UInt8] { key("join/") + ClusterPaths.digits(device) }
  package var requests: [UInt8] { key("join/") }

  /// The earlier master keys and the index key, sealed under the present master key.
  package var ring: [UInt8] { key("ring") }

  /// The state that a member has seen last, signed by it.
  package func seen(_ member: ItemKey) -> [UInt8] { key("seen/") + ClusterPaths.digits(member) }
  package var allSeen: [UInt8] { key("seen/") }

  /// The list of suites.
  package var names: CollectionPlace {
    CollectionPlace(
      head: key("s/names"), entries: key("s/name/"), commits: key("o/names/"), purpose: .settings)
  }

  /// The settings of a suite.
  package func suite(_ suite: ItemKey) -> CollectionPlace {
    CollectionPlace(
      head: suiteHeads + ClusterPaths.digits(suite),
      entries: key("s/set/") + ClusterPaths.digits(suite) + [UInt8(ascii: "/")],
      commits: key("o/set/") + ClusterPaths.digits(suite) + [UInt8(ascii: "/")], purpose: .settings)
  }
  package var suiteHeads: [UInt8] { key("s/head/") }
  /// The settings of all suites.
  package var allSettings: [UInt8] { key("s/set/") }

  /// All that settings are made of.
  package var settings: [UInt8] { key("s/") }

  /// The items of the keychain, without their secrets.
  package var items: CollectionPlace {
    CollectionPlace(
      head: key("k/items"), entries: key("k/item/"), commits: key("o/items/"), purpose: .items)
  }

  /// All that items are made of, without their secrets.
  package var keychain: [UInt8] { key("k/") }

  /// Whether a key belongs to the list of members, or holds the store's keys.
  package func isOfMembers(_ key: [UInt8]) -> Bool { key == ring || key.starts(with: log) }

  /// A secret that an item has or had; `revision`: the version of the head of the items with which it was stored.
  package func secret(_ item: ItemKey, part: UInt8, revision: UInt64) -> [UInt8] {
    secrets(item) + Array("\(part)/".utf8) + ClusterPaths.digits(revision)
  }
  /// All secrets that an item has or had.
  package func secrets(_ item: ItemKey) -> [UInt8] {
    key("v/") + ClusterPaths.digits(item) + [UInt8(ascii: "/")]
  }

  /// 32 hexadecimal digits.
  package static func digits(_ id: ItemKey) -> [UInt8] { digits(id.high) + digits(id.low) }

  /// 16 hexadecimal digits.
  package static func digits(_ number: UInt64) -> [UInt8] {
    (0..<16).map { index in
      let digit = UInt8(truncatingIfNeeded: number >> UInt64(60 - 4 * index) & 15)
      return digit + (digit < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") - 10)
    }
  }

  /// The id that `digits` made; nil: these are no 32 hexadecimal digits.
  package static func id(_ digits: some Collection<UInt8>) -> ItemKey? {
    guard digits.count == 32 else { return nil }
    var words = (high: UInt64(0), low: UInt64(0))
    for byte in digits {
      let digit: UInt8
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
      default: return nil
      }
      words.high = words.high << 4 | words.low >> 60
      words.low = words.low << 4 | UInt64(digit)
    }
    return ItemKey(high: words.high, low: words.low)
  }
}

/// A collection of entries under a head that answers for all of them.
package struct CollectionPlace: Hashable, Sendable {
  /// The key of the head.
  package let head: [UInt8]
  /// The beginning of the entries' keys; 32 hexadecimal digits follow.
  package let entries: [UInt8]
  /// The beginning of the keys of commits that the head does not name any more.
  package let commits: [UInt8]
  /// By which keys head and entries are sealed.
  package let purpose: ClusterKeyPurpose

  package func entry(_ id: ItemKey) -> [UInt8] { entries + ClusterPaths.digits(id) }

  /// The key of a block of commits.
  package func commits(_ block: UInt64) -> [UInt8] { commits + ClusterPaths.digits(block) }

  /// The entry of a key; nil: it is no entry of this collection.
  package func id(_ key: [UInt8]) -> ItemKey? {
    guard key.count == entries.count + 32, key.starts(with: entries) else { return nil }
    return ClusterPaths.id(key[entries.count...])
  }
}
