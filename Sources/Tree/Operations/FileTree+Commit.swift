import Model
import Platform
import SecretMemory
import Store
import Synchronization

// How content becomes a value.
extension FileTree {
  /// Stores `content` as the value at `place`, in one step.
  ///
  /// Returns the permit for the next commit of the same handle.
  /// - Throws: `invalidValue`, `tooLarge`, `readOnly`, `noSpace`, `notFound`, `accessDenied`, `locked`.
  @discardableResult
  func store(
    _ content: Content, appending: Bool, at place: Place, _ commit: Commit
  ) throws(StoreError) -> Permit? {
    var permit: Permit?
    switch place {
    case .key(let key):
      let bytes = content.withBytes { $0.array }
      try storeSetting(bytes, appending: appending, at: key, commit)
    case .value(let item):
      let secret = try secretCopy(of: content)
      permit = try storeSecret(secret, appending: appending, at: item, commit)
    case .otpauth(let item):
      let uri = try secretCopy(of: content)
      permit = try storeOtpauth(uri, appending: appending, at: item, commit)
    case .view(.file(let folder, let name)):
      try storeView(content, appending: appending, name, in: folder, commit)
      permit = commit.permit
    default:
      throw .notPermitted(reason: "no value stands here")
    }
    overlay.withLock { overlay in
      overlay.pending[place] = nil
      overlay.setAside[place] = nil
    }
    return permit
  }

  /// Stores what a scratch file holds, with its time and its attributes as far as they are valid; what was
  /// set since it got the value's name goes first.
  @discardableResult
  func store(
    _ scratch: ScratchFile, at place: Place, _ later: Commit = Commit()
  ) throws(StoreError) -> Permit? {
    let snapshot = scratch.snapshot()
    let word = snapshot.attributes["user.keyhole.type"].map { String(decoding: $0, as: UTF8.self) }
    let commit = Commit(
      declaredType: later.declaredType ?? word.flatMap(SettingType.init),
      modified: later.modified ?? snapshot.modified, permit: later.permit,
      writer: later.writer, attributes: snapshot.attributes, beforePublishing: later.beforePublishing)
    let permit = try store(snapshot.content, appending: false, at: place, commit)
    scratch.noteStored(snapshot.revision)
    return permit
  }

  private func storeSetting(
    _ content: [UInt8], appending: Bool, at place: KeyPlace, _ commit: Commit
  ) throws(StoreError) {
    let pending = overlay.withLock { $0.pending[.key(place)] }
    let suite = settings.suite(place.suite)
    try suite.update(beforePublishing: commit.beforePublishing) { (contents) throws(StoreError) in
      let existing = contents.settings[place.key]?.value
      let before =
        try appending
        ? existing.map { (value) throws(StoreError) in try settings.codec.content(of: value) } ?? [] : []
      guard before.count + content.count <= Self.settingLimit else {
        throw .tooLarge(limit: Self.settingLimit)
      }
      let type = commit.declaredType ?? pending?.declaredType ?? settledType(of: existing, at: place)
      let value = try settings.codec.value(of: before + content, as: type)
      // A little text can make much: deep JSON is laid out with as much indentation.
      guard try settings.codec.size(of: value) <= Self.settingLimit else {
        throw .tooLarge(limit: Self.settingLimit)
      }
      contents.settings[place.key] = Setting(value, modified: commit.modified)
      contents.writer = commit.writer?.rawValue
      overlay.withLock { overlay in
        overlay.emptyTypes[place] = value == .data([]) && type == .data ? .data : nil
      }
    }
  }

  /// The type that new content has to have; nil: a key that was created empty takes it from its content.
  func settledType(of value: SettingValue?, at place: KeyPlace) -> SettingType? {
    guard value == .data([]) else { return value?.type }
    return overlay.withLock { $0.emptyTypes[place] }
  }

  private func storeSecret(
    _ content: borrowing SecretBytes, appending: Bool, at place: ItemPlace, _ commit: Commit
  ) throws(StoreError) -> Permit? {
    let keychain = try requireKeychain()
    guard stagedItem(place) == nil, let stored = try storedItem(place) else {
      return try addItem(content, at: place, commit)
    }
    do throws(StoreError) {
      try keychain.rewrite(stored.id, readingSecret: true, commit.permit) {
        (item, secret) throws(StoreError) in
        var new = try appending ? copy(of: secret) : copy(of: content)
        if appending { try join(content, to: &new) }
        let modified = item.modified
        try finish(&item, &new, commit)
        // An equal secret is no change, and so no news.
        if commit.modified == nil, new == secret { item.modified = modified }
        secret = new
      }
    } catch .damaged where !appending {
      // A new secret mends the item.
      try keychain.rewrite(stored.id, readingSecret: false, commit.permit) {
        (item, secret) throws(StoreError) in
        secret = try copy(of: content)
        try finish(&item, &secret, commit)
      }
    }
    return commit.permit
  }

  private func addItem(
    _ content: borrowing SecretBytes, at place: ItemPlace, _ commit: Commit
  ) throws(StoreError) -> Permit? {
    guard let staged = stagedItem(place) else { throw .notFound }
    var item = staged.item
    var secret = try copy(of: content)
    try finish(&item, &secret, commit)
    let added: Item
    if let further = staged.otpauth {
      item.otpauth = FurtherSecret(modified: further.modified)
      let uri = try secretCopy(of: further.content)
      added = try requireKeychain().add(item, secret: secret, otpauth: uri, commit.permit)
    } else {
      added = try requireKeychain().add(item, secret: secret, commit.permit)
    }
    overlay.withLock { $0.stagedItems[place] = nil }
    return commit.permit?.stored(as: added)
  }

  /// Applies a commit's changes to an item, besides its secret.
  private func finish(
    _ item: inout Item, _ secret: inout SecretBytes, _ commit: Commit
  ) throws(StoreError) {
    for (name, value) in commit.attributes { try applyAtCommit(name, value, to: &item) }
    if secret.isOneLine {
      item.keepsLineEnd = item.keepsLineEnd || options.keepsLineEnds
      if !item.keepsLineEnd { try dropLast(of: &secret) }
    }
    guard secret.count <= Self.secretLimit else { throw .tooLarge(limit: Self.secretLimit) }
    item.modified = commit.modified ?? .now
  }

  func secretCopy(of content: Content) throws(StoreError) -> SecretBytes {
    try content.withBytes { (bytes) throws(StoreError) in
      do { return try SecretBytes(copying: bytes) } catch { throw .outOfMemory }
    }
  }

  func copy(of secret: borrowing SecretBytes) throws(StoreError) -> SecretBytes {
    do { return try SecretBytes(copying: secret) } catch { throw .outOfMemory }
  }

  func join(
    _ content: borrowing SecretBytes, to secret: inout SecretBytes
  ) throws(StoreError) {
    do { try secret.append(content.span) } catch { throw .outOfMemory }
  }

  func dropLast(of secret: inout SecretBytes) throws(StoreError) {
    do { try secret.resize(to: secret.count - 1) } catch { throw .outOfMemory }
  }
}

extension SettingCodec {
  /// The value that content holds; without a type, the one that it shows by itself.
  func value(of content: [UInt8], as type: SettingType?) throws(StoreError) -> SettingValue {
    guard let type else { return inferred(from: content) }
    return try value(of: content, as: type)
  }
}

extension SecretBytes {
  /// One line of UTF-8, ended by one line feed: what `echo` writes.
  fileprivate var isOneLine: Bool {
    let bytes = span
    guard bytes.last == 0x0A, bytes.firstOffset(of: 0x0A) == bytes.count - 1 else { return false }
    // Not through a String, which would be a copy of the secret.
    var check = UTF8Check()
    for index in bytes.indices where !check.append(bytes[index]) { return false }
    return check.isComplete
  }
}
