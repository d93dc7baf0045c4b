import Model
import SecretMemory
import Store

// A keychain that holds one secret of an item gets the `otpauth:` URI as an item of its own, a companion of the other at
// `ACCOUNT/otp`, which its attribute `belongsTo` names by its path. On the way back it is the item's second secret again.
extension KeychainMigration {
  private static let name = "otp"

  /// The companions that may become second secrets, by the identity of their items.
  func pairs(among items: [Item]) -> [ItemIdentity: Item] {
    guard target.otpauthURIs != nil, source.otpauthURIs == nil else { return [:] }
    let owners = Dictionary(items.map { (path($0.identity), $0) }) { first, _ in first }
    var pairs: [ItemIdentity: Item] = [:]
    for companion in items {
      guard let path = companion.attributes[ExactString(ItemIdentity.belongsTo)],
        let owner = owners[String(decoding: path, as: UTF8.self)], pairs[owner.identity] == nil,
        owner.identity.companion(Self.name) == companion.identity, owner.hasSameProtection(as: companion),
        !companion.access.needsPassword
      else { continue }
      pairs[owner.identity] = companion
    }
    return pairs
  }

  /// Whether a companion's secret is an `otpauth:` URI, after its flags were met.
  func isURI(_ companion: Item) throws(StoreError) -> Bool {
    _ = try permit(companion)
    return KeyURI.isOne(try source.secret(of: companion.id))
  }

  /// An item's URI, or what its companion holds; empty where there is none.
  func otpauth(
    of item: Item, _ companion: Item?, _ password: ItemPassword?
  ) throws(StoreError) -> HeldURI {
    if let companion { return HeldURI(try source.secret(of: companion.id)) }
    guard item.otpauth != nil else { return try HeldURI() }
    return HeldURI(try source.using(password).requireOtpauthURIs().otpauth(of: item.id))
  }

  /// Whether an item of the other keychain has this URI; nil: whether it has none.
  func has(_ uri: HeldURI?, _ item: Item, _ target: any KeychainEngine) throws(StoreError) -> Bool {
    guard let uri else { return item.otpauth == nil }
    guard item.otpauth != nil else { return false }
    return try target.requireOtpauthURIs().otpauth(of: item.id) == uri.bytes
  }

  /// Gives a keychain that has no room for it the URI of an item as a companion. Returns where it is, and the new item;
  /// nil: it was there already.
  func copyOtpauth(
    of item: Item, present: [Item], among items: [Item], _ password: ItemPassword?
  ) throws(StoreError) -> (ItemIdentity, ItemID?) {
    let uri = try otpauth(of: item, nil, password)
    let target = try target.using(password)
    let taken = Set(items.map(\.identity))
    var number = 1
    while true {
      let name = number == 1 ? Self.name : "\(Self.name)-\(number)"
      let companion = companion(of: item, item.identity.companion(name))
      number += 1
      if taken.contains(companion.identity) { continue }
      if let there = present.first(where: { $0.identity == companion.identity }) {
        guard there.belongs(to: path(item.identity)), try target.secret(of: there.id) == uri.bytes else {
          continue
        }
        try sealIfWanted(there, uri.bytes, in: target)
        return (there.identity, nil)
      }
      let added = try target.add(companion, secret: uri.bytes)
      guard try target.secret(of: added.id) == uri.bytes else {
        try? target.remove([added.id])
        throw .unsupported(reason: "the other keychain does not keep it as it is")
      }
      return (companion.identity, added.id)
    }
  }

  /// The protection of the item holds for its companion.
  private func companion(of item: Item, _ identity: ItemIdentity) -> Item {
    var companion = Item(
      id: ItemID(rawValue: ""), identity: identity, created: item.created,
      modified: item.otpauth?.modified ?? item.modified, accessibility: item.accessibility,
      access: item.access, programs: converted(item).programs, isSealed: item.isSealed || seals)
    companion.attributes[ExactString(ItemIdentity.belongsTo)] = Array(path(item.identity).utf8)
    return companion
  }

  /// The URI of an item that is to be put back.
  func uriOfCopy(
    of item: Item, _ copy: Item, _ copies: [Item], _ password: ItemPassword?
  ) throws(StoreError) -> HeldURI {
    let target = try target.using(password)
    guard item.otpauth != nil else { return try HeldURI() }
    if copy.otpauth != nil { return HeldURI(try target.requireOtpauthURIs().otpauth(of: copy.id)) }
    for companion in copies where companion.belongs(to: path(item.identity)) {
      let secret = try target.secret(of: companion.id)
      if KeyURI.isOne(secret) { return HeldURI(secret) }
    }
    throw .notFound
  }
}

/// A URI that is passed on.
final class HeldURI {
  let bytes: SecretBytes

  init(_ bytes: consuming SecretBytes) {
    self.bytes = bytes
  }

  init() throws(StoreError) {
    do { bytes = try SecretBytes() } catch { throw .outOfMemory }
  }
}

extension Item {
  fileprivate func belongs(to path: String) -> Bool {
    attributes[ExactString(ItemIdentity.belongsTo)].map { $0.elementsEqual(path.utf8) } ?? false
  }
}

extension KeyURI {
  fileprivate static func isOne(_ secret: borrowing SecretBytes) -> Bool { (try? check(secret)) != nil }
}
