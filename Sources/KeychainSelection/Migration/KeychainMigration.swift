package import Model
import SecretMemory
package import Store

/// Moves every item of one keychain to another, with its secret and its attributes: all of them, or none.
///
/// Killed at any moment it leaves each item in the old keychain or in both, and the next one goes on from
/// there. What a keychain of a cluster can't keep stays where it is.
package struct KeychainMigration {
  let source: any KeychainEngine
  let target: any KeychainEngine
  let seals: Bool
  let permit: (Item) throws(StoreError) -> Permit?
  let path: (ItemIdentity) -> String
  /// Why a keychain of a cluster can't keep an item; nil: none of both is one.
  let sharing: ((Item) -> StoreError?)?
  /// The name of the collection that an item has in the new keychain, where that is not the one that clients store in.
  let collection: (Item) -> ExactString?

  /// An item that stays where it is.
  package struct Left: Sendable {
    /// Its number in the old keychain: several items may have one identity.
    package var id: ItemID
    package var item: ItemIdentity
    package var error: StoreError
  }

  /// An item of a Secret Service whose label and attributes give the identity of another one.
  package struct Renamed: Sendable {
    package var former: ItemIdentity
    package var present: ItemIdentity
  }

  /// The counts of `otpauth:` URIs where one of the keychains holds one secret of an item only.
  package struct Summary: Sendable {
    /// The paths of the items that such a URI is the secret of now.
    package internal(set) var companions: [String] = []
    /// The paths of the items of which such an item is the second secret now.
    package internal(set) var joined: [String] = []
    /// The items that were not moved.
    package internal(set) var left: [Left] = []
    /// The items that have another name now, as another one has the former.
    package internal(set) var renamed: [Renamed] = []
  }

  /// Why nothing was moved.
  package struct Failure: Error {
    /// The item that it failed on; nil: none in particular.
    package var item: ItemIdentity?
    /// The error of reading or writing the item.
    package var error: StoreError
    /// Whether all items are in the new keychain, and some of them may be no longer in the old one.
    package var isCopied = false
  }

  /// `sealing`: the items are sealed by the vault before the other keychain gets them. `path` gives an item's path in the
  /// tree, by which a companion names its item. `permit` asks whatever the item's flags demand before its secret is read.
  /// `sharing`: one of them is a cluster's, and why it can't keep an item. `collection`: the collection of an item that the new keychain is
  /// to note; nil: the one that clients store in.
  package init(
    from source: any KeychainEngine, to target: any KeychainEngine, sealing: Bool = false,
    sharing: ((Item) -> StoreError?)? = nil, collection: @escaping (Item) -> ExactString? = { _ in nil },
    path: @escaping (ItemIdentity) -> String = { $0.folder.string },
    permit: @escaping (Item) throws(StoreError) -> Permit?
  ) {
    self.source = source
    self.target = target
    seals = sealing
    self.sharing = sharing
    self.collection = collection
    self.permit = permit
    self.path = path
  }

  /// The items that `run` would move. - Throws: `Failure` where it would move none.
  package func plan() throws(Failure) -> [Item] {
    // Sealed documents are kept by vaults only: they stay where they are.
    let items = try attempt(nil) { () throws(StoreError) in
      try source.items().filter { !$0.identity.isDocument && !$0.isInMemory && isMovable($0) }
    }
    // The rules of folders go last, and are not told of. The oldest one of an identity keeps it.
    let shown = items.filter { $0.identity != .rules }
    // Times of a Secret Service are whole seconds, and the numbers in its paths grow.
    return shown.sorted {
      ($0.created, $0.id.rawValue.utf8.count, $0.id.rawValue) < (
        $1.created, $1.id.rawValue.utf8.count, $1.id.rawValue
      )
    }
      + items.filter { $0.identity == .rules }
  }

  /// How many items get another name, as another one has their identity.
  package static func renamed(of items: [Item]) -> Int { items.count - Set(items.map(\.identity)).count }

  /// The items that stay in the old keychain because they end with the login session: those of the collection `session`.
  ///
  /// - Throws: `Failure`.
  package func inMemory() throws(Failure) -> [Item] {
    try attempt(nil) { () throws(StoreError) in try source.items().filter(\.isInMemory) }
  }

  /// Moves the items; `progress` gets how many of them are done.
  @discardableResult
  package func run(_ all: [Item], progress: (Int) -> Void) throws(Failure) -> Summary {
    defer { wipeStack() }
    var added: [ItemID] = []
    var passwords: [ItemID: ItemPassword] = [:]
    var summary = Summary()
    var items = all
    summary.left = refused(of: all)
    let refusedIDs = Set(summary.left.map(\.id))
    items.removeAll { refusedIDs.contains($0.id) }
    var pairs = self.pairs(among: items)
    var names = MovedNames([], [:])
    // They are moved with the items that they name.
    let companions = Set(pairs.values.map(\.id))
    do throws(Failure) {
      let present = try attempt(nil) { () throws(StoreError) in try target.items() }
      let known = Dictionary(present.map { ($0.identity, $0) }, uniquingKeysWith: { first, _ in first })
      names = MovedNames(items, known)
      for (index, item) in items.enumerated() {
        try attempt(item.identity) { () throws(StoreError) -> Void in
          guard !companions.contains(item.id) else { return }
          if sharing != nil, item.identity == .rules { return try copyRules(item, known[.rules]) }
          let password = try permit(item)?.password
          passwords[item.id] = password
          var companion = names.isFirst(item) ? pairs[item.identity] : nil
          if let other = companion, try !isURI(other) {
            (companion, pairs[item.identity]) = (nil, nil)
            if let new = try copy(other, with: nil, present: known[other.identity], nil) { added.append(new) }
          }
          let (item, copied) = try names.moving(item) { (item, present) throws(StoreError) in
            try copy(item, with: companion, present: present, password)
          }
          if let copied { added.append(copied) }
          if companion != nil { summary.joined.append(path(item.identity)) }
          guard item.otpauth != nil, target.otpauthURIs == nil else { return }
          let (identity, new) = try copyOtpauth(of: item, present: present, among: items, password)
          if let new { added.append(new) }
          summary.companions.append(path(identity))
        }
        progress(index + 1)
      }
    } catch {
      // Items that an earlier run has copied stay.
      try? target.remove(added)
      throw error
    }
    guard sharing == nil else {
      try removeShared(items)
      summary.renamed = names.renamed(of: items)
      return summary
    }
    try removeOriginals(items, added, passwords, pairs, names)
    summary.renamed = names.renamed(of: items)
    return summary
  }

  /// The items that the cluster can't keep.
  package func refused(of items: [Item]) -> [Left] {
    guard let sharing else { return [] }
    return items.compactMap { item in
      sharing(item).map { Left(id: item.id, item: item.identity, error: $0) }
    }
  }
}

extension KeychainMigration {
  private func attempt<Value>(
    _ item: ItemIdentity?, _ body: () throws(StoreError) -> Value
  ) throws(Failure) -> Value {
    do throws(StoreError) { return try body() } catch { throw Failure(item: item, error: error) }
  }

  /// Removes the first original, and looks whether its copy stays: where both keychains are one, the removal of the originals would leave
  /// nothing. The original is put back then.
  private func removeFirst(
    _ item: Item, as identity: ItemIdentity, _ password: ItemPassword?
  ) throws(StoreError) {
    guard let copy = try target.items().first(where: { $0.identity == identity }) else {
      throw .notFound
    }
    let secret = try source.using(password).secret(of: item.id)
    let uri = try otpauth(of: item, nil, password)
    try source.remove([item.id])
    do throws(StoreError) {
      // Of the keychain itself, and not of what this process has read before.
      guard try target.using(password).secret(of: copy.id) == secret else { throw .notFound }
    } catch {
      _ = try source.using(password).add(item, secret: secret, uri)
      guard error == .notFound else { throw error }
      throw .notPermitted(
        reason: "both keychains are the same one, which Keyhole serves itself; nothing was moved")
    }
  }

  /// All are there now: the originals go, or everything is taken back.
  private func removeOriginals(
    _ items: [Item], _ added: [ItemID], _ passwords: [ItemID: ItemPassword],
    _ pairs: [ItemIdentity: Item], _ names: MovedNames
  ) throws(Failure) {
    let companions = Set(pairs.values.map(\.id))
    // A run that is ended in between leaves an item without its companion, and no companion alone.
    let alone = items.first { !companions.contains($0.id) && pairs[$0.identity] == nil }
    let first = alone ?? items.first { !companions.contains($0.id) }
    let items = items.filter { companions.contains($0.id) } + items.filter { !companions.contains($0.id) }
    do throws(StoreError) {
      if let first { try removeFirst(first, as: names.identity(of: first), passwords[first.id]) }
      try source.remove(items.map(\.id).filter { $0 != first?.id })
    } catch {
      try restore(items, passwords, pairs, names, after: error)
      try? target.remove(added)
      throw Failure(item: nil, error: error)
    }
  }

  /// Originals that are gone already are put back from the copies.
  private func restore(
    _ items: [Item], _ passwords: [ItemID: ItemPassword], _ pairs: [ItemIdentity: Item], _ names: MovedNames,
    after failure: StoreError
  ) throws(Failure) {
    do throws(StoreError) {
      let left = try source.items()
      let known = Set(items.map(\.id))
      let ids = Set(left.map(\.id))
      // One that was put back has another id.
      var back = left.filter { !known.contains($0.id) }.map(\.identity)
      let copies = try target.items()
      for item in items where !ids.contains(item.id) {
        if let index = back.firstIndex(of: item.identity) {
          back.remove(at: index)
          continue
        }
        // A companion's copy is the second secret of its item.
        let owner = pairs.first { $0.value.id == item.id }?.key
        let identity = owner ?? names.identity(of: item)
        guard let copy = copies.first(where: { $0.identity == identity }) else { throw failure }
        let password = passwords[
          owner.flatMap { owner in items.first { $0.identity == owner }?.id } ?? item.id]
        let target = try target.using(password)
        guard owner == nil else {
          _ = try source.add(item, secret: target.requireOtpauthURIs().otpauth(of: copy.id))
          continue
        }
        let uri = try uriOfCopy(of: item, copy, copies, password)
        _ = try source.using(password).add(item, secret: target.secret(of: copy.id), uri)
      }
    } catch {
      // Nothing is lost: every item is in the new keychain, and some in the old one too.
      throw Failure(item: nil, error: error)
    }
  }
}
