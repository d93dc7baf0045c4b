/// The beginning of a sealed file, parsed; its bytes are authenticated with every piece.
///
/// Version 2: magic (8), version (1), recipient (1), its parameters, commitment to the key (32). Parameters of a
/// passphrase are scrypt's log2 N, r, p and a salt of 16 bytes; of a public key the recipient's public key and HPKE's
/// encapsulated key, 32 bytes each. Version 1 (exports of Keyhole 0.1): magic, version, log2 N, r, p, salt.
public struct SealedFileHeader: Sendable {
  /// Enough of a file to parse any header of it.
  public static let longest = 8 + 2 + 2 * SealedFile.keySize + commitmentSize
  static let commitmentSize = 32
  static let saltSize = 16

  enum Recipient: Equatable, Sendable {
    case passphrase(logN: UInt8, salt: [UInt8])
    case publicKey([UInt8], encapsulated: [UInt8])
  }

  /// The content of the file, by its magic number.
  public let kind: SealedFile.Kind
  /// 1 or 2.
  public let version: UInt8
  let recipient: Recipient
  /// The key's commitment; empty in version 1.
  let commitment: [UInt8]
  /// All bytes of the header.
  let bytes: [UInt8]

  /// The length of the header in bytes, which is where the first piece begins.
  public var count: Int { bytes.count }

  /// The bytes that the key is bound to: all before the commitment.
  var boundBytes: ArraySlice<UInt8> { bytes.dropLast(commitment.count) }

  /// The content's bytes in each piece but the last.
  public var pieceSize: Int { version == 1 ? 64 * 1024 : SealedFile.pieceSize }

  /// A piece's bytes in the file.
  public var sealedPieceSize: Int { pieceSize + SealedFile.tagSize }

  /// The kind of key that opens the file.
  public var lock: SealedFile.Lock {
    switch recipient {
    case .passphrase: .passphrase
    case .publicKey(let key, _): .privateKey(publicKey: key)
    }
  }

  /// - Throws: `FormatError` for what is no header of a known version, also one that is cut off.
  public init(reading start: [UInt8]) throws(FormatError) {
    guard let kind = SealedFile.kind(of: start), start.count > 9 else {
      throw FormatError("it is no sealed file of Keyhole")
    }
    var fields = Fields(start, at: 8)
    self.kind = kind
    version = try fields.byte()
    switch (version, kind) {
    case (1, .export): recipient = try fields.passphrase()
    case (2, _): recipient = try fields.recipient()
    default: throw FormatError("a newer Keyhole made this file; `keyhole --version` says which this one is")
    }
    commitment = try version == 1 ? [] : fields.take(Self.commitmentSize)
    bytes = Array(start[..<fields.position])
  }

  /// Version 2, as it is before the key is known.
  static func unbound(_ kind: SealedFile.Kind, _ recipient: Recipient) -> [UInt8] {
    let start = Array(kind.rawValue.utf8) + [2]
    return switch recipient {
    case .passphrase(let logN, let salt): start + [1, logN, 8, 1] + salt
    case .publicKey(let key, let encapsulated): start + [2] + key + encapsulated
    }
  }
}

extension SealedFileHeader {
  private struct Fields {
    let bytes: [UInt8]
    private(set) var position: Int

    init(_ bytes: [UInt8], at position: Int) {
      self.bytes = bytes
      self.position = position
    }

    mutating func take(_ count: Int) throws(FormatError) -> [UInt8] {
      guard bytes.count - position >= count else { throw FormatError("the sealed file is cut off") }
      defer { position += count }
      return Array(bytes[position..<position + count])
    }

    mutating func byte() throws(FormatError) -> UInt8 { try take(1)[0] }

    mutating func recipient() throws(FormatError) -> Recipient {
      switch try byte() {
      case 1: return try passphrase()
      case 2: return .publicKey(try take(SealedFile.keySize), encapsulated: try take(SealedFile.keySize))
      default: throw FormatError("the sealed file is damaged")
      }
    }

    /// The parameters in the file are not trusted: they could ask for any amount of memory.
    mutating func passphrase() throws(FormatError) -> Recipient {
      let (logN, r, p) = (try byte(), try byte(), try byte())
      guard SealedFile.passphraseCosts.contains(logN), r == 8, p == 1 else {
        throw FormatError("the sealed file is damaged")
      }
      return .passphrase(logN: logN, salt: try take(SealedFileHeader.saltSize))
    }
  }
}
