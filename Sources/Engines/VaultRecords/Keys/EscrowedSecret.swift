import Crypto
import FoundationEssentials
public import Model
import Platform
public import SecretMemory
import Store

/// A secret as another keychain gets it: sealed, and in letters, because some keep nothing but text.
///
/// `keyhole-sealed:1:` and the seal in Base64 without `=` at its end. The key is the secret of an item of the vault,
/// by which it is held to the item's class, access flags and rules; the binding names that item. The length of what is
/// inside follows from the sealed length: a mount shows it also while the vault is locked.
public enum EscrowedSecret {
  private static let mark = Array("keyhole-sealed:1:".utf8)
  /// Nonce, the byte in front, authentication tag.
  private static let overhead = 12 + 1 + 16

  /// How long the secret inside is, in bytes.
  public static func size(inside count: Int) -> Int {
    max(0, (count - mark.count) * 3 / 4 - overhead)
  }

  /// Whether this is what `seal` makes.
  public static func isSealed(_ content: borrowing SecretBytes) -> Bool {
    content.count >= mark.count && content.span.extracting(..<mark.count).hasSameBytes(as: mark.span)
  }

  /// A new key.
  public static func makeKey() throws(StoreError) -> SecretBytes {
    do {
      var key = try SecretBytes()
      try SymmetricKey(size: .bits256).append(to: &key)
      return key
    } catch {
      throw StoreError(vault: error)
    }
  }

  /// - Throws: `outOfMemory`.
  public static func seal(
    _ secret: borrowing SecretBytes, under key: borrowing SecretBytes, of item: ItemID
  ) throws(StoreError) -> SecretBytes {
    do {
      let sealed = try Cipher.seal(
        unpadded: secret, under: symmetric(key), boundTo: Binding.handed(item: item).bytes)
      var letters = Data(mark) + sealed.base64EncodedData()
      while letters.last == UInt8(ascii: "=") { letters.removeLast() }
      var content = try SecretBytes()
      try content.append(letters.span)
      return content
    } catch {
      throw StoreError(vault: error)
    }
  }

  /// - Throws: `damaged` also under another key, `outOfMemory`.
  public static func open(
    _ content: borrowing SecretBytes, under key: borrowing SecretBytes, of item: ItemID
  ) throws(StoreError) -> SecretBytes {
    do {
      return try Cipher.openUnpadded(
        Cipher.box(blob(content)), under: symmetric(key), boundTo: Binding.handed(item: item).bytes)
    } catch {
      throw StoreError(vault: error)
    }
  }
}

extension EscrowedSecret {
  private static func blob(_ content: borrowing SecretBytes) throws(StoreError) -> Data {
    guard isSealed(content) else { throw .damaged(what: "seal") }
    // It is sealed: copies of it do no harm.
    var letters = Data(content.span.extracting(droppingFirst: mark.count).array)
    while !letters.count.isMultiple(of: 4) { letters.append(UInt8(ascii: "=")) }
    // The last letter may have bits that say nothing: there is one spelling only.
    guard let blob = Data(base64Encoded: letters), blob.base64EncodedData() == letters
    else { throw .damaged(what: "seal") }
    return blob
  }

  private static func symmetric(_ key: borrowing SecretBytes) -> SymmetricKey {
    SymmetricKey(copying: key.span)
  }
}

extension ItemIdentity {
  /// That of the vault's item which keeps the key of what another keychain holds under this identity.
  public var seal: ItemIdentity {
    var writer = FieldWriter()
    ItemRecord.put(self, into: &writer)
    let digest = SHA256.hash(data: writer.bytes).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    return .generic(service: ItemIdentity.seals, account: ExactString(digest))
  }
}
