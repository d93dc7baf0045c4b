import Model
import Platform
import SecretMemory
import Store
import Synchronization

// The second file of an item's directory, which is there only when the item has an `otpauth:` URI.
extension FileTree {
  /// - Throws: `unsupported` for a keychain that holds one secret of an item.
  func requireOtpauth() throws(StoreError) {
    guard try requireKeychain().engine.otpauthURIs != nil else { throw .noOtpauth }
  }

  /// The URI that waits in memory for the item's secret; nil: none, or another file.
  func stagedContent(at place: Place) -> Content? {
    guard case .otpauth(let item) = place else { return nil }
    return overlay.withLock { $0.pending[place] == nil ? $0.stagedItems[item]?.otpauth?.content : nil }
  }

  func storeOtpauth(
    _ content: borrowing SecretBytes, appending: Bool, at place: ItemPlace, _ commit: Commit
  ) throws(StoreError) -> Permit? {
    if let staged = stagedItem(place) {
      try stageOtpauth(content, appending: appending, staged, at: place, commit)
      return commit.permit
    }
    guard let stored = try storedItem(place) else { throw .notFound }
    do throws(StoreError) {
      try rewriteOtpauth(content, appending: appending, of: stored, readingSecret: true, commit)
    } catch .damaged where !appending {
      // A new one mends it.
      try rewriteOtpauth(content, appending: false, of: stored, readingSecret: false, commit)
    }
    return commit.permit
  }

  private func rewriteOtpauth(
    _ content: borrowing SecretBytes, appending: Bool, of item: Item, readingSecret: Bool, _ commit: Commit
  ) throws(StoreError) {
    try requireKeychain().rewriteOtpauth(of: item.id, readingSecret: readingSecret, commit.permit) {
      (further, secret) throws(StoreError) in
      let new = try joined(secret, content, appending: appending)
      let isSame = readingSecret && commit.modified == nil && new == secret
      // An equal one is no change, and so no news.
      if !isSame || further == nil { further = FurtherSecret(modified: commit.modified ?? .now) }
      secret = try copy(of: new)
    }
  }

  /// Without the line feed at its end, as `echo` writes it.
  private func joined(
    _ present: borrowing SecretBytes, _ content: borrowing SecretBytes, appending: Bool
  ) throws(StoreError) -> SecretBytes {
    var new = try appending ? copy(of: present) : copy(of: content)
    if appending { try join(content, to: &new) }
    if new.span.last == 0x0A { try dropLast(of: &new) }
    return new
  }

  private func stageOtpauth(
    _ content: borrowing SecretBytes, appending: Bool, _ staged: StagedItem, at place: ItemPlace,
    _ commit: Commit
  ) throws(StoreError) {
    let nothing = try Content.empty(secret: true)
    let present = try secretCopy(of: staged.otpauth?.content ?? nothing)
    let new = try joined(present, content, appending: appending)
    try KeyURI.check(new)
    let waiting = StagedOtpauth(content: .secret(new), modified: commit.modified ?? .now)
    overlay.withLock { $0.stagedItems[place]?.otpauth = waiting }
  }

  /// unlink(2): the item stays.
  func removeOtpauth(_ place: ItemPlace) throws(StoreError) {
    let (wasPending, wasStaged) = overlay.withLock { overlay in
      overlay.setAside[.otpauth(place)] = nil
      let wasPending = overlay.pending.removeValue(forKey: .otpauth(place)) != nil
      defer { overlay.stagedItems[place]?.otpauth = nil }
      return (wasPending, overlay.stagedItems[place]?.otpauth != nil)
    }
    guard !wasStaged else { return }
    guard stagedItem(place) == nil, let item = try storedItem(place), item.otpauth != nil else {
      guard wasPending else { throw .notFound }
      return
    }
    try requireKeychain().removeOtpauth(of: item.id)
  }

  /// With its secret an item goes, and with the item its `otpauth:` URI, which may exist nowhere else: not by the way.
  func requireNoOtpauth(_ place: ItemPlace) throws(StoreError) {
    guard stagedItem(place) == nil, try storedItem(place)?.otpauth != nil else { return }
    throw .notPermitted(
      reason: "the item would go, and its otpauth URI with it; remove `otpauth` first, or the whole item")
  }

  func setModifiedOfOtpauth(_ time: Timestamp, _ place: ItemPlace) throws(StoreError) {
    guard stagedItem(place) == nil else {
      return overlay.withLock { $0.stagedItems[place]?.otpauth?.modified = time }
    }
    guard let item = try storedItem(place), item.otpauth != nil else { return }
    try requireKeychain().update([item.id]) { $0.otpauth?.modified = time }
  }

  /// Drops what waits for the secrets of items that can't be read now.
  func forgetStagedOtpauth() {
    let waiting = overlay.withLock { $0.stagedItems.filter { $0.value.otpauth != nil }.map(\.key) }
    for place in waiting where !isUnlocked(.otpauth(place)) {
      overlay.withLock { $0.stagedItems[place]?.otpauth = nil }
    }
  }
}

extension KeychainStore {
  /// One of an item's secrets.
  nonisolated func secret(
    _ which: ItemSecrets, of item: Item, _ permit: Permit?
  ) throws(StoreError) -> SecretBytes {
    try which == .otpauth ? otpauth(of: item, permit) : secret(of: item, permit)
  }
}
