public import Model
public import SecretMemory

/// A systemd credential that opens a vault: a line of 64 hexadecimal digits, as `keyhole passphrase --add-credential` writes it.
public enum LoginCredential {
  /// The name under which a service gets it (`LoadCredentialEncrypted=`).
  public static let name = "keyhole.unlock"
  /// In bytes.
  static let byteCount = 32
  /// Of a line, in bytes.
  package static let longest = 2 * byteCount + 1
  private static let digits = Array("0123456789abcdef".utf8)

  /// A new one. - Throws: `outOfMemory`.
  public static func make() throws(StoreError) -> SlotSecret {
    do {
      var bytes = try SecretBytes(count: byteCount)
      for index in 0..<byteCount { bytes[index] = UInt8.random(in: .min ... .max) }
      return SlotSecret(.credential, bytes)
    } catch {
      throw .outOfMemory
    }
  }

  /// The line, with its line feed. - Throws: `outOfMemory`.
  public static func text(of credential: SlotSecret) throws(StoreError) -> SecretBytes {
    do {
      var text = try SecretBytes(count: 2 * byteCount + 1)
      for index in 0..<byteCount {
        let byte = credential.bytes[index]
        text[2 * index] = digits[Int(byte >> 4)]
        text[2 * index + 1] = digits[Int(byte & 15)]
      }
      text[2 * byteCount] = UInt8(ascii: "\n")
      return text
    } catch {
      throw .outOfMemory
    }
  }

  /// The credential of a line, with or without its line feed.
  ///
  /// - Throws: `invalidValue` for what is none, `outOfMemory`.
  public static func parse(_ line: Span<UInt8>) throws(StoreError) -> SlotSecret {
    var bytes: SecretBytes
    do { bytes = try SecretBytes(count: byteCount) } catch { throw .outOfMemory }
    guard
      line.count == 2 * byteCount
        || (line.count == 2 * byteCount + 1 && line[2 * byteCount] == UInt8(ascii: "\n"))
    else { throw none }
    for index in 0..<byteCount {
      guard let high = digits.firstIndex(of: line[2 * index]),
        let low = digits.firstIndex(of: line[2 * index + 1])
      else { throw none }
      bytes[index] = UInt8(truncatingIfNeeded: high << 4 | low)
    }
    return SlotSecret(.credential, bytes)
  }

  private static let none = StoreError.invalidValue(
    reason: "it is no credential of `keyhole passphrase --add-credential`")
}
