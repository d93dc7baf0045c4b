import Model
import Store
import VaultRecords

// The vault's part of a change.
extension SealingKeychain {
  /// An item as it shows, before and after.
  struct Change {
    var old: Item
    var new: Item
  }

  /// A change of a seal that is not finished.
  enum SealChange {
    case made(Item)
    /// An earlier change of an item's secret was cut short, and this one takes its place.
    case resumed(Item)
    case changed(from: Item, to: Item)
    case ending(Item)
  }

  func change(
    _ stored: Item, _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) -> Change {
    let old = shown(stored)
    var new = old
    try body(&new)
    new.isSealed = new.isToBeSealed
    return Change(old: old, new: new)
  }

  /// Moves seals, and gives them other classes, flags and rules: all of them at once.
  func begin(_ changes: [Change]) throws(StoreError) -> [SealChange] {
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
  func begin(_ change: Change, size: Int) throws(StoreError) -> [SealChange] {
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

  func beginSealing(_ item: Item, size: Int) throws(StoreError) -> SealChange {
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
  func finish(_ changes: [SealChange]) {
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
  func undo(_ changes: [SealChange], after error: StoreError) {
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
