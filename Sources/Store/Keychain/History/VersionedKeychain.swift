public import Model

/// A keychain that keeps what its items were before they were changed or removed.
///
/// The secret of a version is read as an item's, by its id: `KeychainEngine.secret`, `OtpauthKeychain.otpauth`.
public protocol VersionedKeychain: Sendable {
  /// How much is kept; nil: this process adds no versions, and leaves those that are there.
  var retention: HistoryRetention? { get }

  /// From now on this process keeps so much; what is too much goes with the next change. By default it has no effect, as where
  /// another process keeps the versions.
  func keep(_ retention: HistoryRetention)

  /// The versions of the item with an identity, and of those with it that were removed, the oldest first.
  ///
  /// - Throws: `locked` for a keychain that was never unlocked, `damaged` where one is missing.
  func versions(of identity: ItemIdentity) throws(StoreError) -> [ItemVersion]

  /// A version by its id. - Throws: `notFound`, `locked`, `damaged`.
  func version(_ id: ItemID) throws(StoreError) -> ItemVersion

  /// The last state of a removed item, as its newest version; nil: there is no such removed item.
  func lastVersion(ofRemoved item: ItemID) throws(StoreError) -> ItemVersion?

  /// The identities of items of which versions are kept, each once: of such that are there, and of removed ones.
  ///
  /// It costs what these items cost, and not the others.
  func identitiesWithVersions() throws(StoreError) -> [ItemIdentity]

  /// Makes an item what it was: its secrets and attributes, never with weaker protection than it has now
  /// (`Item.restoring`). What it is now becomes a version. A removed item is there again.
  ///
  /// - Returns: the item as it is stored.
  /// - Throws: `notFound`; `accessDenied` where the protection of both can't be had; `locked`, `readOnly`, `noSpace`.
  func restore(_ version: ItemID) throws(StoreError) -> Item

  /// Deletes all versions of the item with an identity, and those with it that were removed, so that nothing of them is left
  /// in the keychain's files. The item itself stays.
  ///
  /// - Returns: how many.
  @discardableResult func purge(_ identity: ItemIdentity) throws(StoreError) -> Int

  /// Deletes the versions of all items, and every removed item, as `purge`.
  ///
  /// - Returns: how many.
  @discardableResult func purgeAll() throws(StoreError) -> Int

  /// Deletes what is kept for longer than `retention` says. - Returns: how many versions.
  @discardableResult func prune() throws(StoreError) -> Int
}

/// An item as it was.
public struct ItemVersion: Hashable, Sendable {
  /// Rises with each version in a keychain, and is never used twice.
  public var number: UInt64
  /// The item as it was. `id` is the version's own.
  public var item: Item
  /// When it was replaced.
  public var replaced: Timestamp
  /// The change that replaced it.
  public var changes: VersionChanges

  /// A version.
  public init(number: UInt64, item: Item, replaced: Timestamp, changes: VersionChanges) {
    (self.number, self.item) = (number, item)
    (self.replaced, self.changes) = (replaced, changes)
  }
}

/// The parts of an item that a change concerned.
public struct VersionChanges: OptionSet, Hashable, Sendable {
  /// The bits of the set. They are stored, and never change.
  public let rawValue: UInt8

  /// Changes of these bits.
  public init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// The secret.
  public static let value = VersionChanges(rawValue: 1)
  /// The `otpauth:` URI.
  public static let otpauth = VersionChanges(rawValue: 2)
  /// Label, comment and other attributes.
  public static let attributes = VersionChanges(rawValue: 4)
  /// Class, access flags, rules or the item's own password.
  public static let protection = VersionChanges(rawValue: 8)
  /// Its name.
  public static let name = VersionChanges(rawValue: 16)
  /// The item was removed.
  public static let removal = VersionChanges(rawValue: 32)

  /// For people: `value`, `attributes`, …
  public var words: [String] {
    let all: [(VersionChanges, String)] = [
      (.value, "value"), (.otpauth, "otpauth"), (.attributes, "attributes"), (.protection, "protection"),
      (.name, "name"), (.removal, "removed"),
    ]
    return all.filter { contains($0.0) }.map(\.1)
  }
}

extension ItemID {
  /// The id of a version of an item.
  public init(version number: UInt64, of item: ItemID) {
    self.init(rawValue: "\(item.rawValue)@\(number)")
  }

  /// The item and the number, where it is a version's; nil: it is an item's.
  public var version: (item: ItemID, number: UInt64)? {
    // Asked several times for each item that is opened: without a number it costs one look at the bytes.
    let bytes = rawValue.utf8Span.span
    guard bytes.indices.contains(where: { bytes[$0] == UInt8(ascii: "@") }) else { return nil }
    let parts = rawValue.split(separator: "@", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, let number = UInt64(parts[1]) else { return nil }
    return (ItemID(rawValue: String(parts[0])), number)
  }
}

extension VersionedKeychain {
  /// Does nothing.
  public func keep(_ retention: HistoryRetention) {}
}
