import Model
import Store
import Synchronization

// The attributes of an item, stored or staged.
extension FileTree {
  func itemAttributeNames(_ place: ItemPlace) throws(StoreError) -> [String] {
    guard let staged = stagedItem(place) else { return ItemAttributes.names(of: try anyItem(place)) }
    return Set(ItemAttributes.names(of: staged.item)).union(staged.extra.keys).sorted()
  }

  func attributeValue(_ name: String, of place: ItemPlace) throws(StoreError) -> AttributeValue {
    guard let staged = stagedItem(place) else {
      guard let item = try storedItem(place) else { throw .notFound }
      return try ItemAttributes.attribute(name, of: item)
    }
    if let extra = staged.extra[name] { return .bytes(extra) }
    return try ItemAttributes.attribute(name, of: staged.item)
  }

  func setAttribute(
    _ name: String, _ value: [UInt8], of place: ItemPlace, _ permit: Permit?
  ) throws(StoreError) {
    var trial = try anyItem(place)
    if name == KeyholeAttribute.history.name { _ = try requireKeychain().engine.requireHistory() }
    if AttributeName.isRule(name) { try apply(name, value, to: &trial) }
    let enrolled = trial.attributes[FingerprintEnrollment.attribute]
    if stagedItem(place) != nil {
      return overlay.withLock { overlay in
        overlay.stagedItems[place]?.set(name, to: value)
        overlay.stagedItems[place]?.item.attributes[FingerprintEnrollment.attribute] = enrolled
      }
    }
    try requireKeychain().update([trial.id], permit) { (item) throws(StoreError) in
      try ItemAttributes.set(name, to: value, on: &item)
      if AttributeName.isRule(name) { item.attributes[FingerprintEnrollment.attribute] = enrolled }
    }
  }

  /// Applies an attribute that waited for a commit: one that the item can't have is left out, but for rules, whose
  /// user relies on them.
  func applyAtCommit(_ name: String, _ value: [UInt8], to item: inout Item) throws(StoreError) {
    do throws(StoreError) {
      try apply(name, value, to: &item)
    } catch {
      if AttributeName.isRule(name) { throw error }
    }
  }

  /// Sets an attribute. A flag that nothing would hold, or that can't be met, must not be accepted.
  func apply(_ name: String, _ value: [UInt8], to item: inout Item) throws(StoreError) {
    let before = item.access
    try ItemAttributes.set(name, to: value, on: &item)
    guard item.access != before else { return }
    try requireSupport(for: item.access)
    item.attributes[FingerprintEnrollment.attribute] = try FingerprintEnrollment.note(
      for: item.access, options.enrolledFingers)
  }

  /// - Throws: `unsupported` for a password where nothing would hold it, and for flags that can't be met here.
  func requireSupport(for access: AccessFlags) throws(StoreError) {
    let keychain = try requireKeychain()
    guard !access.needsPassword || keychain.engine.passwords != nil else {
      throw .unsupported(reason: "this keychain can't seal an item with a password of its own")
    }
    try access.requireSatisfiable(with: options.factors(keychain))
  }

  func removeAttribute(_ name: String, of place: ItemPlace, _ permit: Permit?) throws(StoreError) {
    if stagedItem(place) != nil {
      return try overlay.withLock { (overlay) throws(StoreError) in
        try overlay.stagedItems[place]?.remove(name)
      }
    }
    let item = try anyItem(place)
    // An attribute that can't be removed must not cost a transaction either: rsync tries it on every copy.
    var trial = item
    try ItemAttributes.remove(name, from: &trial)
    guard trial != item else { return }
    try requireKeychain().update([item.id], permit) { (item) throws(StoreError) in
      try ItemAttributes.remove(name, from: &item)
    }
  }
}

extension StagedItem {
  /// A staged item takes every attribute; what an item can't have is dropped at the commit.
  fileprivate mutating func set(_ name: String, to value: [UInt8]) {
    do {
      try ItemAttributes.set(name, to: value, on: &item)
      extra[name] = nil
    } catch {
      extra[name] = value
    }
  }

  fileprivate mutating func remove(_ name: String) throws(StoreError) {
    guard extra.removeValue(forKey: name) == nil else { return }
    try ItemAttributes.remove(name, from: &item)
  }
}
