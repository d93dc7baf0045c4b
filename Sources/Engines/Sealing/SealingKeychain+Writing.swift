package import Model
package import SecretMemory
import Store
import Vault
import VaultRecords

// A change concerns two stores. The vault's part comes first and leaves a seal that fits the item before and after;
// when the other keychain has made its part, the seal is finished. A crash in between leaves a readable item.
extension SealingKeychain {
  /// In bytes, of what is sealed.
  private static let largestSecret = 1 << 20

  package func add(_ item: Item, secret: borrowing SecretBytes) throws(StoreError) -> Item {
    seals.refresh()
    guard item.isToBeSealed else {
      let added = try base.add(item, secret: secret)
      // An item that was sealed under this name is gone.
      try? release(item.identity)
      return shown(added)
    }
    var item = item
    item.isSealed = true
    guard !isKnown(item.identity, besides: []) else { throw .exists }
    let sealing = try beginSealing(item, size: secret.count)
    do throws(StoreError) {
      let added = try base.add(item, secret: seal(secret, for: item))
      finish([sealing])
      return shown(added)
    } catch {
      // Another process that was faster may need the key.
      if error != .exists { undo([sealing], after: error) }
      throw error
    }
  }

  package func update(
    _ items: [ItemID], _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) -> [Item] {
    seals.refresh()
    var isSealing = false
    var changes: [Change] = []
    var begun: [SealChange] = []
    do throws(StoreError) {
      let updated = try base.update(items) { stored throws(StoreError) in
        let change = try change(stored, body)
        isSealing = change.old.isSealed != change.new.isSealed
        guard !isSealing else { throw .interrupted }
        changes.append(change)
        stored = change.new
        if changes.count == items.count { begun = try begin(changes) }
      }
      finish(begun)
      return updated.map(shown)
    } catch {
      undo(begun, after: error)
      guard isSealing else { throw error }
    }
    guard items.count == 1 else { throw .unsupported(reason: "items are sealed one at a time") }
    // That takes another secret.
    return [try rewrite(items[0], readingSecret: true) { item, _ throws(StoreError) in try body(&item) }]
  }

  package func rewrite(
    _ item: ItemID, readingSecret: Bool,
    _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item {
    seals.refresh()
    let isRead = readingSecret || base.known(item).map(mayBeSealed) ?? true
    var begun: [SealChange] = []
    do throws(StoreError) {
      let written = try base.rewrite(item, readingSecret: isRead) { stored, content throws(StoreError) in
        guard isRead || !mayBeSealed(stored) else { throw .interrupted }
        begun = try rewrite(&stored, &content, readingSecret: readingSecret, body)
      }
      finish(begun)
      return shown(written)
    } catch {
      undo(begun, after: error)
      throw error
    }
  }

  private func rewrite(
    _ stored: inout Item, _ content: inout SecretBytes, readingSecret: Bool,
    _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> [SealChange] {
    // Also where the secret is to be replaced unread: what is damaged must not be overwritten.
    let present = try mayBeSealed(stored) ? opened(content, stored, body) : Self.copy(content)
    var secret = try readingSecret ? Self.copy(present) : Self.empty()
    let change = try change(stored) { item throws(StoreError) in try body(&item, &secret) }
    guard secret.count <= Self.largestSecret else { throw .tooLarge(limit: Self.largestSecret) }
    if readingSecret, secret == present, change.new == change.old { return [] }
    let begun = try begin(change, size: secret.count)
    do throws(StoreError) {
      content = try change.new.isSealed ? seal(secret, for: change.new) : Self.copy(secret)
    } catch {
      undo(begun, after: error)
      throw error
    }
    stored = change.new
    return begun
  }

  /// Opens sealed content. Content that another program has put in its place is taken only by a call that unseals the item.
  private func opened(
    _ content: borrowing SecretBytes, _ stored: Item,
    _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> SecretBytes {
    do throws(StoreError) {
      return try open(content, shown(stored))
    } catch {
      guard case .damaged = error, !EscrowedSecret.isSealed(content) else { throw error }
      var item = shown(stored)
      var nothing = try Self.copy(content)
      try body(&item, &nothing)
      guard !item.isToBeSealed, seals.seal(of: stored.identity) != nil else { throw error }
      return try Self.copy(content)
    }
  }

  private func seal(_ secret: borrowing SecretBytes, for item: Item) throws(StoreError) -> SecretBytes {
    guard secret.count <= Self.largestSecret else { throw .tooLarge(limit: Self.largestSecret) }
    guard let seal = seals.seal(of: item.identity) else { throw .locked }
    let key = try requireVault(making: false).secret(of: seal.id)
    return try EscrowedSecret.seal(secret, under: key, of: seal.id)
  }

  private static func empty() throws(StoreError) -> SecretBytes {
    do { return try SecretBytes() } catch { throw .outOfMemory }
  }
}

// MARK: The vault's part

extension SealingKeychain {
  /// An item as it shows, before and after.
  private struct Change {
    var old: Item
    var new: Item
  }

  /// A change of a seal that is not finished.
  private enum SealChange {
    case made(Item)
    /// An earlier change of an item's secret was cut short, and this one takes its place.
    case resumed(Item)
    case changed(from: Item, to: Item)
    case ending(Item)
  }

  private func change(
    _ stored: Item, _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) -> Change {
    let old = shown(stored)
    var new = old
    try body(&new)
    new.isSealed = new.isToBeSealed
    return Change(old: old, new: new)
  }

  /// Moves seals, and gives them other classes, flags and rules: all of them at once.
  private func begin(_ changes: [Change]) throws(StoreError) -> [SealChange] {
    let ids = Set(changes.map(\.old.id))
    for change in changes where change.old.identity != change.new.identity {
      try clear(change.new.identity, for: ids)
    }
    var wanted: [ItemID: Item] = [:]
    var old: [Item] = []
    for change in changes {
      guard let (seal, new) = try changedSeal(change), seal != new else { continue }
      wanted[seal.id] = new
      old.append(seal)
    }
    return zip(old, try replace(old, with: wanted)).map { .changed(from: $0, to: $1) }
  }

  /// With another secret, which is `size` bytes long, and may be sealed from now on or not any more.
  private func begin(_ change: Change, size: Int) throws(StoreError) -> [SealChange] {
    guard let present = seals.seal(of: change.old.identity) else {
      return change.new.isSealed ? [try beginSealing(change.new, size: size)] : try begin([change])
    }
    var begun = try begin([change])
    let seal = seals.seal(of: change.new.identity) ?? present
    if !change.new.isSealed {
      begun.append(.ending(try modify(seal) { $0.unfinishedSize = size }))
    } else if seal.isUnfinished {
      begun.append(.resumed(seal))
    }
    return begun
  }

  /// An item's seal before and after; nil: it has none.
  private func changedSeal(_ change: Change) throws(StoreError) -> (old: Item, new: Item)? {
    guard let seal = seals.seal(of: change.old.identity) else {
      // Without the vault nothing that it holds changes; the rest may.
      let isVaults = change.old.identity != change.new.identity || !change.new.hasProtection(of: change.old)
      guard !change.old.isSealed || !isVaults else {
        throw seals.isOpen ? .damaged(what: "the item's seal") : .locked
      }
      return nil
    }
    var new = seal
    new.takeProtection(of: change.new)
    if change.new.identity != change.old.identity {
      (new.identity, new.formerSeal) = (change.new.identity.seal, change.old.identity.seal)
    }
    return (seal, new)
  }

  /// Content that was sealed under an identity that is free now must not be mistaken for the item that gets it.
  private func clear(_ identity: ItemIdentity, for items: Set<ItemID>) throws(StoreError) {
    let isTaken = isKnown(identity, besides: items) || items.contains { base.known($0)?.identity == identity }
    if !isTaken { try release(identity) }
  }

  /// No item has this identity any more: its seal goes, but for one that is another's since a move that was cut short.
  func release(_ identity: ItemIdentity) throws(StoreError) {
    for seal in seals.candidates(for: identity) {
      let other = seal.identity == identity.seal ? seal.formerSeal : seal.identity
      if let other, base.known.contains(where: { $0.identity.seal == other }) {
        _ = try modify(seal) { ($0.identity, $0.formerSeal) = (other, nil) }
      } else {
        try drop([seal])
      }
    }
  }

  func isKnown(_ identity: ItemIdentity, besides items: Set<ItemID>) -> Bool {
    base.known.contains { $0.identity == identity && !items.contains($0.id) }
  }

  private func beginSealing(_ item: Item, size: Int) throws(StoreError) -> SealChange {
    let vault = try requireVault(making: true)
    // Another process may just be making it.
    if let seal = seals.seal(of: item.identity), seal.isUnfinished, seal.hasProtection(of: item) {
      return .resumed(seal)
    }
    try release(item.identity)
    var seal = Item(sealing: item)
    seal.unfinishedSize = size
    let made = try vault.add(seal, secret: EscrowedSecret.makeKey())
    seals.note([made])
    return .made(made)
  }

  /// The other keychain has done its part. Where the vault can't do the rest, the item is readable all the same.
  private func finish(_ changes: [SealChange]) {
    for change in changes {
      switch change {
      case .made(let seal), .resumed(let seal): _ = try? modify(seal) { $0.unfinishedSize = nil }
      case .changed(let old, let new):
        if old.identity != new.identity { _ = try? modify(new) { $0.formerSeal = nil } }
      case .ending(let seal): try? drop([seal])
      }
    }
  }

  /// The other keychain has refused. Where it is not known what it has done, the seals fit both.
  private func undo(_ changes: [SealChange], after error: StoreError) {
    if case .unreachable = error { return }
    for change in changes.reversed() {
      switch change {
      case .made(let seal): try? drop([seal])
      case .resumed: break
      case .changed(let old, let new): _ = try? replace([new], with: [new.id: old])
      case .ending(let seal): _ = try? modify(seal) { $0.unfinishedSize = nil }
      }
    }
  }
}

extension SealingKeychain {
  private func modify(_ seal: Item, _ body: (inout Item) -> Void) throws(StoreError) -> Item {
    var new = seals.present(seal)
    body(&new)
    return try replace([seal], with: [seal.id: new])[0]
  }

  private func replace(_ old: [Item], with wanted: [ItemID: Item]) throws(StoreError) -> [Item] {
    guard !old.isEmpty else { return [] }
    let present = old.map(seals.present)
    let changed = try requireVault(making: false).update(old.map(\.id)) { seal throws(StoreError) in
      guard let new = wanted[seal.id] else { return }
      (seal.identity, seal.attributes) = (new.identity, new.attributes)
      seal.takeProtection(of: new)
    }
    seals.note(changed, replacing: present)
    return changed
  }

  private func drop(_ old: [Item]) throws(StoreError) {
    guard !old.isEmpty, let vault = try seals.vault(making: false) else { return }
    try vault.remove(old.map(\.id))
    seals.note([], replacing: old.map(seals.present))
  }
}
