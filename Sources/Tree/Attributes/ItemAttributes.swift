public import Model
import Platform

/// The extended attributes of an item, by their full names: SPECIFICATION.md, section 7.
///
/// Three kinds: what Keyhole knows (`user.keyhole.label`), what tells the item from others
/// (`user.service`), and the item's own (`user.comment`). An attribute that is its default is not listed;
/// of those, only `accessible` has a default that can be said, and it is read, replaced and removed as if it
/// were there.
public enum ItemAttributes {
  /// XATTR_NAME_MAX, in bytes: what is longer, a kernel can't ask for.
  static let longestName = 255

  /// The names that listxattr(2) gives, ordered by their bytes.
  public static func names(of item: Item) -> [String] {
    let known = KeyholeAttribute.allCases.filter { $0.isListed(for: item) }.map(\.name)
    let identity = IdentityAttribute.allCases.filter { $0.isPresent(in: item.identity) }.map(\.rawValue)
    let own = item.attributes.keys.map(\.string).filter { isOwn($0, of: item) }
    let names = known + (identity + own).map { name in "user." + name }
    return names.filter(isAskable).map { ExactString($0) }.sorted().map(\.string)
  }

  /// How many attributes `names` leaves out although a client of the Secret Service has given them: a kernel can't ask for their names.
  public static func unlistedCount(of item: Item) -> Int {
    let listed = Set(names(of: item))
    return item.attributes.keys.count { name in
      !name.utf8.starts(with: "keyhole.".utf8) && !listed.contains("user.\(name.string)")
    }
  }

  /// The value for getxattr(2).
  ///
  /// - Throws: `noSuchAttribute`, `unsupported` for a name that no item has.
  public static func value(_ name: String, of item: Item) throws(StoreError) -> [UInt8] {
    try attribute(name, of: item).array
  }

  /// The same, without a copy of a text.
  static func attribute(_ name: String, of item: Item) throws(StoreError) -> AttributeValue {
    let value: AttributeValue? =
      switch try ItemAttributeName.of(name, item.identity) {
      case .keyhole(let attribute): attribute.text(of: item).map(AttributeValue.text)
      case .identity(let present): present.map { .text($0.string) }
      case .own(let name): item.attributes[ExactString(name)].map(AttributeValue.bytes)
      }
    guard let value else { throw .noSuchAttribute }
    return value
  }

  /// The change by setxattr(2), without its flags.
  ///
  /// `isImported`: an item's own attribute may have any text, as a client of the Secret Service may have given it.
  ///
  /// - Throws: `notPermitted` for another identity or what only Keyhole says, `invalidValue`, `unsupported`.
  public static func set(
    _ name: String, to value: [UInt8], on item: inout Item, isImported: Bool = false
  ) throws(StoreError) {
    switch try ItemAttributeName.of(name, item.identity) {
    case .keyhole(let attribute): try attribute.set(value, on: &item)
    case .identity(let present): try check(value, is: present)
    case .own(let name):
      let isText = isImported && name != "generic"
      let value =
        try isText ? ItemAttributeValue.text(value) : ItemAttributeValue.checked(value, as: name, on: item)
      item.attributes[ExactString(name)] = value
    }
  }

  /// The change by removexattr(2).
  ///
  /// Identity and what Keyhole computes stays, without an error: rsync(1) removes all it did not send.
  ///
  /// - Throws: `noSuchAttribute`, `unsupported`.
  public static func remove(_ name: String, from item: inout Item) throws(StoreError) {
    let parsed = try ItemAttributeName.of(name, item.identity)
    switch parsed {
    case .keyhole(let attribute): try attribute.remove(from: &item)
    case .identity: break
    case .own(let name):
      guard item.attributes.removeValue(forKey: ExactString(name)) != nil else { throw .noSuchAttribute }
    }
  }
}

extension ItemAttributes {
  /// Identity is changed by moving the item's folder only.
  static func check(_ value: [UInt8], is present: ExactString?) throws(StoreError) {
    guard let present, present.utf8.elementsEqual(value) else {
      throw .notPermitted(reason: "this is the item's identity; rename its folder with mv")
    }
  }

  /// Whether a stored attribute can be shown: its name is none that Keyhole or the identity gives.
  private static func isOwn(_ name: String, of item: Item) -> Bool {
    !name.utf8.span.starts(with: "keyhole.")
      && IdentityAttribute(name.utf8.span)?.value(in: item.identity) == nil
  }

  private static func isAskable(_ name: String) -> Bool {
    name != "user." && name.utf8.count <= longestName && !name.utf8.contains(0)
  }
}
