import WrapperCore

/// The properties of one key and type whose providers report no changes.
final class Peers: Sendable {
  private struct Name: Hashable {
    let key: String
    let type: ObjectIdentifier
  }

  private struct Member {
    weak var entry: AnyObject?
  }

  private static let known = Guarded<[Name: Peers]>([:])

  /// Held while one of them uses its provider.
  let lock = Guarded(())
  private let entries = Guarded<[Member]>([])

  static func of<Value>(_ key: String, _ type: Value.Type) -> Peers {
    let name = Name(key: key, type: ObjectIdentifier(type))
    return known.withLock { known in
      let peers = known[name] ?? Peers()
      known[name] = peers
      return peers
    }
  }

  func add(_ entry: AnyObject) {
    entries.withLock { entries in
      entries.removeAll { $0.entry == nil }
      entries.append(Member(entry: entry))
    }
  }

  func members<Entry: AnyObject>(_ type: Entry.Type) -> [Entry] {
    entries.withLock { $0.compactMap { $0.entry as? Entry } }
  }
}
