import Crypto
import FoundationEssentials
public import SecretMemory

/// A file of any size, sealed to a passphrase or to a public key: `Documentation/FORMATS.md`, “Sealed files”.
///
/// The header says how the key is found; it is bound into the key and commits to it. The content follows in
/// pieces, each AES-256-GCM under a nonce that counts the pieces and marks the last one (the STREAM construction),
/// so that none can be left out, moved, repeated or cut off. Only one piece has to be in memory at a time.
public enum SealedFile {
  /// The content of a sealed file: its first eight bytes.
  public enum Kind: String, CaseIterable, Sendable {
    case export = "KHEXPORT"
    case backup = "KHBACKUP"
  }

  /// The kind of key that a header asks for.
  public enum Lock: Sendable {
    case passphrase
    /// The private half of an X25519 key pair, with its public half where the file names it.
    case privateKey(publicKey: [UInt8])
  }

  /// The content's bytes in one piece; the last piece of a file may be shorter.
  ///
  /// A quarter of what version 1 had, so that a process with 64 KiB of locked memory has room for a piece.
  public static let pieceSize = 16 * 1024
  static let tagSize = 16
  /// The costs of a guess at a passphrase that readers accept, each the binary logarithm of scrypt's N (with r = 8 and
  /// p = 1): 2^cost KiB of memory.
  public static let passphraseCosts: ClosedRange<UInt8> = 14...20
  /// 128 MiB, and about half a second.
  public static let standardCost: UInt8 = 17
  /// In bytes, of both halves of a key pair.
  public static let keySize = 32

  /// The kind of a sealed file, by its first bytes; nil: they begin none.
  public static func kind(of start: some Sequence<UInt8>) -> Kind? {
    let magic = Array(start.prefix(8))
    return Kind.allCases.first { $0.rawValue.utf8.elementsEqual(magic) }
  }

  /// A new X25519 private key: it opens what is sealed to its public half, `publicKey(of:)`.
  public static func makePrivateKey() throws(FormatError) -> SecretBytes {
    defer { wipeStack() }
    var copy = Curve25519.KeyAgreement.PrivateKey().rawRepresentation
    return try secret(&copy)
  }

  /// The bytes in memory for secrets; the original is wiped.
  static func secret(_ bytes: inout Data) throws(FormatError) -> SecretBytes {
    do throws(SecretMemoryError) { return try SecretBytes(moving: &bytes) } catch { throw FormatError(error) }
  }

  /// The public half of a private key. - Throws: `FormatError` where the bytes are none.
  public static func publicKey(of privateKey: borrowing SecretBytes) throws(FormatError) -> [UInt8] {
    Array(try SealedFileKey.agreementKey(privateKey).publicKey.rawRepresentation)
  }
}
