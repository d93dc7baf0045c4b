import Model
import SecretMemory
import Store
import Synchronization

// One item is copied, or what an earlier run has left of its copy is completed.
extension KeychainMigration {
  /// Returns the new item; nil: it was there already, as an earlier run left it.
  func copy(
    _ item: Item, with companion: Item?, present: Item?, _ password: ItemPassword?
  ) throws(StoreError) -> ItemID? {
    let item = converted(item)
    let secret = try source.using(password).secret(of: item.id)
    let target = try target.using(password)
    let uri = try otpauth(of: item, companion, password)
    var new = item
    new.otpauth = target.otpauthURIs == nil ? nil : item.otpauth
    if let companion { new.otpauth = FurtherSecret(modified: companion.modified) }
    if let present {
      guard present.isCopy(of: item) else { throw .exists }
      try complete(present, secret, in: target)
      guard try target.secret(of: present.id) == secret else { throw .exists }
      // Of one that an earlier run has copied the companion may be gone already: its URI is in the copy.
      if let further = new.otpauth {
        if present.otpauth == nil {
          try complete(present, further, uri, in: target)
        } else {
          guard try has(uri, present, target) else { throw .exists }
        }
      }
      try sealIfWanted(present, secret, in: target)
      return nil
    }
    // The collection of a Secret Service is one of its objects, and in another keychain an attribute.
    if item.collection != nil { new.noteClientOfFurtherAttributes() }
    new.collection = nil
    if seals, new.isShown { new.isSealed = true }
    let added = try target.add(new, secret: secret, uri)
    // Believed only when it was read.
    let hasURI = try has(new.otpauth == nil ? nil : uri, added, target)
    let arrived = try target.secret(of: added.id) == secret && added.isCopy(of: item) && hasURI
    guard arrived else {
      try? target.remove([added.id])
      throw .unsupported(reason: "the other keychain does not keep it as it is")
    }
    return added.id
  }

  /// An equal item that is there already is sealed too, where the others are.
  ///
  /// - Throws: `unsupported` where its secret is another one then.
  func sealIfWanted(
    _ present: Item, _ secret: borrowing SecretBytes, in target: any KeychainEngine
  ) throws(StoreError) {
    guard seals, present.isShown, !present.isSealed else { return }
    _ = try target.update([present.id]) { $0.isSealed = true }
    guard try target.secret(of: present.id) == secret else {
      throw .unsupported(reason: "the other keychain does not keep it as it is")
    }
  }

  /// Gives a copy in a Secret Service its secret if it has none: GNOME Keyring stores an item before its secret, and leaves it so where it
  /// ends in between. In a keychain with transactions, an item without one is another item.
  private func complete(
    _ present: Item, _ secret: borrowing SecretBytes, in target: any KeychainEngine
  ) throws(StoreError) {
    guard target.batches == nil, secret.count > 0, try target.secret(of: present.id).count == 0 else {
      return
    }
    // `rewrite` takes a closure that may not capture a borrowed value.
    let copy = Mutex<SecretBytes?>(try secret.copied())
    _ = try target.rewrite(present.id, readingSecret: true) { (stored, content) throws(StoreError) in
      // Another process may have stored one since.
      guard content.count == 0, let copy = copy.withLock({ $0.take() }) else { return }
      if seals, stored.isShown { stored.isSealed = true }
      content = copy
    }
  }

  /// Gives a copy its `otpauth:` URI: a run that ended between the item and its URI has left it without.
  private func complete(
    _ present: Item, _ further: FurtherSecret, _ uri: HeldURI, in target: any KeychainEngine
  ) throws(StoreError) {
    let uris = try target.requireOtpauthURIs()
    let copy = Mutex<SecretBytes?>(try uri.bytes.copied())
    _ = try uris.rewriteOtpauth(of: present.id, readingSecret: false) {
      (stored, content) throws(StoreError) in
      guard stored == nil, let copy = copy.withLock({ $0.take() }) else { return }
      stored = further
      content = copy
    }
    guard try uris.otpauth(of: present.id) == uri.bytes else {
      throw .unsupported(reason: "the other keychain does not keep it as it is")
    }
  }
}

extension KeychainEngine {
  func using(_ password: ItemPassword?) throws(StoreError) -> any KeychainEngine {
    guard let password else { return self }
    return try requirePasswords().using(password)
  }

  /// Adds an item, with a URI if it has one.
  func add(
    _ item: Item, secret: borrowing SecretBytes, _ uri: HeldURI
  ) throws(StoreError) -> Item {
    guard item.otpauth != nil else { return try add(item, secret: secret) }
    return try requireOtpauthURIs().add(item, secret: secret, otpauth: uri.bytes)
  }
}
extension Item {
  /// Notes that a client made the item, where it has attributes by which a client tells it from others of its identity: then no other
  /// client's item takes its place.
  fileprivate mutating func noteClientOfFurtherAttributes() {
    let isFurther = attributes.keys.contains { name in
      name != SecretSchema.attribute && !name.utf8.starts(with: "keyhole.".utf8)
    }
    if isFurther, identity.itemClass != .other { noteClient() }
  }

  /// Whether it is in the collection of a Secret Service that is never stored.
  var isInMemory: Bool { collection == "session" }

  /// The same in everything that can be moved but the secret, which is compared by itself: the size of one whose sealing
  /// was interrupted may be that of the other state. A Secret Service has its own times, and adds a schema and what the
  /// schema's program looks for.
  fileprivate func isCopy(of other: Item) -> Bool {
    portable == other.portable && hasSameClientAttributes(as: other)
  }

  /// Whether clients of a Secret Service see the same attributes of both, but for libsecret's schema for none, which GNOME Keyring adds.
  func hasSameClientAttributes(as other: Item) -> Bool { clientAttributes == other.clientAttributes }

  private var clientAttributes: SecretSchema.Attributes {
    ServiceItem.attributes(of: self).filter {
      $0.key != SecretSchema.attribute || $0.value != SecretSchema.none
    }
  }

  private var portable: Item {
    var item = self
    (item.id, item.collection, item.otpauth) = (ItemID(rawValue: ""), nil, nil)
    (item.created, item.modified) = (Timestamp(seconds: 0), Timestamp(seconds: 0))
    (item.isSealed, item.size) = (false, 0)
    (item.omittedNames, item.hasGenericSchema) = ([], false)
    let schema = item.attributes.removeValue(forKey: SecretSchema.attribute).flatMap { ExactString(utf8: $0) }
    for (name, value) in schema.flatMap(SecretSchema.named)?.fixed ?? [:]
    where item.attributes[name].map({ $0 == Array(value.utf8) }) == true {
      item.attributes[name] = nil
    }
    return item
  }
}

extension SecretBytes {
  fileprivate borrowing func copied() throws(StoreError) -> SecretBytes {
    do { return try SecretBytes(copying: self) } catch { throw .outOfMemory }
  }
}
