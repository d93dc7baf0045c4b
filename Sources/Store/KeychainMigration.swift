public import Model
import SecretMemory

/// Moves every item of one keychain to another, with its secret and its attributes: all of them, or none.
///
/// Killed at any moment it leaves each item in the old keychain or in both, and the next one goes on from
/// there.
public struct KeychainMigration {
  private let source: any KeychainEngine
  private let target: any KeychainEngine
  private let seals: Bool
  private let permit: (Item) throws(StoreError) -> Permit?

  /// Why nothing was moved.
  public struct Failure: Error {
    /// The item that it failed on; nil: none in particular.
    public var item: ItemIdentity?
    public var error: StoreError
  }

  /// `sealing`: the items are sealed by the vault before the other keychain gets them. `permit` has whoever an item demands be asked before its secret is read.
  public init(
    from source: any KeychainEngine, to target: any KeychainEngine, sealing: Bool = false,
    permit: @escaping (Item) throws(StoreError) -> Permit?
  ) {
    self.source = source
    self.target = target
    seals = sealing
    self.permit = permit
  }

  /// The items that `run` would move. - Throws: `Failure` where it would move none.
  public func plan() throws(Failure) -> [Item] {
    try attempt(nil) { () throws(StoreError) in
      let items = try source.items()
      try checkUnique(items)
      // The rules of folders go last, and are not told of.
      return items.filter { $0.identity != .rules } + items.filter { $0.identity == .rules }
    }
  }

  /// Moves the items; `progress` is told how many of them are done.
  public func run(_ items: [Item], progress: (Int) -> Void) throws(Failure) {
    defer { wipeStack() }
    var added: [ItemID] = []
    var passwords: [ItemIdentity: ItemPassword] = [:]
    do throws(Failure) {
      let present = try attempt(nil) { () throws(StoreError) in try target.items() }
      let known = Dictionary(present.map { ($0.identity, $0) }, uniquingKeysWith: { first, _ in first })
      for (index, item) in items.enumerated() {
        try attempt(item.identity) { () throws(StoreError) in
          let password = try permit(item)?.password
          passwords[item.identity] = password
          if let new = try copy(item, present: known[item.identity], password) { added.append(new) }
        }
        progress(index + 1)
      }
    } catch {
      // What an earlier run had brought there stays.
      try? target.remove(added)
      throw error
    }
    try removeOriginals(items, added, passwords)
  }
}

extension KeychainEngine {
  fileprivate func using(_ password: ItemPassword?) throws(StoreError) -> any KeychainEngine {
    guard let password else { return self }
    return try using(password)
  }
}

extension KeychainMigration {
  private func attempt<Value>(
    _ item: ItemIdentity?, _ body: () throws(StoreError) -> Value
  ) throws(Failure) -> Value {
    do throws(StoreError) { return try body() } catch { throw Failure(item: item, error: error) }
  }

  /// Only a Secret Service has two items with one identity, and no other keychain could take them.
  private func checkUnique(_ items: [Item]) throws(StoreError) {
    guard Set(items.map(\.identity)).count < items.count else { return }
    throw .notPermitted(reason: "two items have the same identity; rename or remove one of them first")
  }

  /// Returns the new item; nil: it was there already, as an earlier run left it.
  private func copy(
    _ item: Item, present: Item?, _ password: ItemPassword?
  ) throws(StoreError) -> ItemID? {
    let secret = try source.using(password).secret(of: item.id)
    let target = try target.using(password)
    if let present {
      guard present.isCopy(of: item), try target.secret(of: present.id) == secret else { throw .exists }
      return nil
    }
    var new = item
    new.collection = nil
    if seals, new.isShown { new.isSealed = true }
    let added = try target.add(new, secret: secret)
    // Believed only when it was read.
    let arrived = try target.secret(of: added.id) == secret && added.isCopy(of: item)
    guard arrived else {
      try? target.remove([added.id])
      throw .unsupported(reason: "the other keychain does not keep it as it is")
    }
    return added.id
  }

  /// All are there now: the originals go, or everything is taken back.
  private func removeOriginals(
    _ items: [Item], _ added: [ItemID], _ passwords: [ItemIdentity: ItemPassword]
  ) throws(Failure) {
    do throws(StoreError) {
      try source.remove(items.map(\.id))
    } catch {
      try restore(items, passwords, after: error)
      try? target.remove(added)
      throw Failure(item: nil, error: error)
    }
  }

  /// What is gone already is put back from the copies.
  private func restore(
    _ items: [Item], _ passwords: [ItemIdentity: ItemPassword], after failure: StoreError
  ) throws(Failure) {
    do throws(StoreError) {
      let left = Set(try source.items().map(\.identity))
      let copies = try target.items()
      for item in items where !left.contains(item.identity) {
        guard let copy = copies.first(where: { $0.identity == item.identity }) else { throw failure }
        let password = passwords[item.identity]
        _ = try source.using(password).add(item, secret: target.using(password).secret(of: copy.id))
      }
    } catch {
      // Nothing is lost: every item is in the new keychain, and some in the old one too.
      throw Failure(item: nil, error: error)
    }
  }
}

extension Item {
  /// Whether a person is told of it: not of the one that keeps the rules of folders.
  public var isShown: Bool { identity != .rules }

  /// The same in everything that can be moved but the secret, which is compared by itself: the size of one whose sealing
  /// was interrupted may be that of the other state. A Secret Service has its own times, and adds a schema.
  fileprivate func isCopy(of other: Item) -> Bool {
    portable == other.portable
  }

  private var portable: Item {
    var item = self
    (item.id, item.collection) = (ItemID(rawValue: ""), nil)
    (item.created, item.modified) = (Timestamp(seconds: 0), Timestamp(seconds: 0))
    (item.isSealed, item.size) = (false, 0)
    item.attributes["xdg:schema"] = nil
    return item
  }
}
