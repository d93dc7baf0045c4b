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
