import Model
import Store

// One of the keychains is a cluster's: other machines change it meanwhile, and a change of it whose outcome is not known may be made
// later.
extension KeychainMigration {
  private static let removedAtOnce = 1_000

  /// The settings of Keyhole in the item with the rules are those of a machine, and stay.
  func isMovable(_ item: Item) -> Bool {
    sharing == nil || item.identity != .rules || !item.folderRules.isEmpty
  }

  /// An item with its rules for programs as they are in the other keychain: in a cluster's they name this device; and with the name of its
  /// collection.
  func converted(_ item: Item) -> Item {
    var item = item
    item.programs = item.programs.map(converted)
    if item.attributes[Item.collectionAttribute] == nil, let name = collection(item) {
      item.attributes[Item.collectionAttribute] = Array(name.utf8)
    }
    return item
  }

  private func converted(_ rules: ExactString) -> ExactString {
    ProgramRules.text(rules, from: source.host, to: target.host)
  }

  /// Adds the rules of folders to those that are there.
  ///
  /// - Throws: `notPermitted` where a folder has other ones: then its items would be protected otherwise.
  func copyRules(_ item: Item, _ present: Item?) throws(StoreError) {
    let rules = item.folderRules.mapValues { text in
      ExactString(utf8: text).map { Array(converted($0).utf8) } ?? text
    }
    var copy: Item
    if let present {
      for (scope, text) in rules {
        guard let other = present.attributes[scope], other != text else { continue }
        throw .notPermitted(
          reason: "a folder has other rules for programs there; `keyhole rules` shows both, and changes them")
      }
      copy = try target.update([present.id]) { $0.attributes.merge(rules) { $1 } }.first ?? present
    } else {
      copy = item
      copy.attributes = rules
      copy = try target.add(copy, secret: source.secret(of: item.id))
    }
    guard rules.allSatisfy({ copy.attributes[$0.key] == $0.value }) else {
      throw .unsupported(reason: "the other keychain does not keep the rules of folders as they are")
    }
  }

  /// All are in the other keychain now: the originals go where they are still those that were copied. The copies stay, whatever
  /// happens.
  func removeShared(_ items: [Item]) throws(Failure) {
    do throws(StoreError) {
      try target.synchronize()
      let present = Dictionary(try source.items().map { ($0.id, $0) }) { first, _ in first }
      let left = items.filter { present[$0.id] != nil }
      if let changed = left.first(where: { present[$0.id] != $0 }) {
        throw .notPermitted(
          reason:
            "\(path(changed.identity)) was changed while it was moved; remove its copy, and run it again")
      }
      var ids = left.filter { $0.identity != .rules }.map(\.id)[...]
      while !ids.isEmpty {
        try source.remove(Array(ids.prefix(Self.removedAtOnce)))
        ids = ids.dropFirst(Self.removedAtOnce)
      }
      guard let rules = left.first(where: { $0.identity == .rules }) else { return }
      let moved = rules.folderRules
      guard moved.count < rules.attributes.count else { return try source.remove([rules.id]) }
      _ = try source.update([rules.id]) { item in
        for scope in moved.keys { item.attributes[scope] = nil }
      }
    } catch {
      throw Failure(item: nil, error: error, isCopied: true)
    }
  }
}

extension Item {
  /// Of the item that keeps them, by the attributes of their scopes.
  fileprivate var folderRules: [ExactString: [UInt8]] {
    attributes.filter { !ConfigurationKey.isAttribute($0.key) }
  }
}
