import Formats
import Model
import Platform
public import SecretMemory

/// The key pair of backups that are written without a question.
///
/// The public half is kept in the user's configuration; the private half is shown once and kept nowhere. As text, both
/// end with the same eight digits, the key's number: so a person can tell which private key opens which backups.
public enum BackupKey {
  static let privatePrefix = "keyhole-backup-private:"
  static let publicPrefix = "keyhole-backup-public:"
  /// In bytes. It finds out a typing error as well.
  private static let numberSize = 4

  /// The file with the public half. `configuration`: the user's folder, `~/.config`.
  public static func path(_ configuration: String) -> String { configuration + "/keyhole/backup.pub" }

  /// The first four bytes of the public half's SHA-256, in hexadecimal.
  public static func number(of publicKey: [UInt8]) -> String {
    digits(SHA256Hasher.hash(publicKey).prefix(numberSize))
  }

  /// The public half; nil: no key was made.
  ///
  /// - Throws: `BackupError` for a file that is damaged, or that others can write to.
  public static func publicKey(_ configuration: String) throws(BackupError) -> [UInt8]? {
    let path = path(configuration)
    guard Files.hasName(path) else { return nil }
    let file = try OpenFile(path, [.reading, .nonBlocking])
    let (status, bytes) = try attempt(path) { (try file.status(), try file.read(1024)) }
    // Another key in its place would make backups that its owner can open.
    guard status.owner == User.effective, status.permissions & 0o022 == 0 else {
      throw BackupError(path, "others can change it; `chown` and `chmod 600` it after a look at its number")
    }
    let text = String(decoding: bytes, as: UTF8.self).filter { !$0.isWhitespace }
    guard text.hasPrefix(publicPrefix), let key = Self.bytes(text.dropFirst(publicPrefix.count)),
      key.count == SealedFile.keySize + numberSize,
      text.hasSuffix(number(of: Array(key.prefix(SealedFile.keySize))))
    else {
      throw BackupError(path, "it is damaged; put back a copy, or remove it and run `keyhole backup --init`")
    }
    return Array(key.prefix(SealedFile.keySize))
  }

  /// Keeps the public half, on the disk when this returns. - Throws: `BackupError` where there is one.
  public static func keep(_ publicKey: [UInt8], _ configuration: String) throws(BackupError) {
    let path = path(configuration)
    UserFolders.make(Files.folder(of: path))
    let temporary = path + ".new"
    _ = try? Files.remove(temporary)
    try attempt(path) {
      let file = try OpenFile(temporary, [.writing, .create, .exclusive, .noFollow])
      try file.write(Array((publicPrefix + digits(publicKey) + number(of: publicKey) + "\n").utf8))
      try file.synchronize()
    }
    do throws(Errno) {
      // Not every file system has hard links.
      do throws(Errno) { try Files.link(temporary, as: path) } catch { try Files.rename(temporary, to: path) }
    } catch {
      throw BackupError(path, "it can't be written: \(error)")
    }
    _ = try? Files.remove(temporary)
    Folder.synchronize(around: path)
  }

  /// The private half as text for a person.
  public static func text(of privateKey: borrowing SecretBytes) throws(BackupError) -> SecretBytes {
    try attempt("the key") {
      let number = number(of: try SealedFile.publicKey(of: privateKey))
      var text = try SecretBytes()
      try append(Array(privatePrefix.utf8), to: &text)
      try text.resize(to: text.count + 2 * privateKey.count)
      let (bytes, start) = (privateKey.span, privatePrefix.utf8.count)
      var digits = text.mutableSpan
      for index in bytes.indices {
        digits[start + 2 * index] = hexadecimal(bytes[index] >> 4)
        digits[start + 2 * index + 1] = hexadecimal(bytes[index] & 15)
      }
      try append(Array(number.utf8), to: &text)
      return text
    }
  }

  /// The private half that a person typed. Blanks and dashes count for nothing.
  ///
  /// - Throws: `BackupError` for what is no key, or has a typing error.
  public static func privateKey(of text: borrowing SecretBytes) throws(BackupError) -> SecretBytes {
    try attempt("the key") {
      var bytes = try SecretBytes(count: SealedFile.keySize + numberSize)
      try read(text.span, into: &bytes)
      let number = (SealedFile.keySize..<bytes.count).map { bytes.span[$0] }
      try bytes.resize(to: SealedFile.keySize)
      let expected = SHA256Hasher.hash(try SealedFile.publicKey(of: bytes)).prefix(numberSize)
      guard number.elementsEqual(expected) else { throw wrong }
      return bytes
    }
  }

  private static func read(_ text: Span<UInt8>, into bytes: inout SecretBytes) throws {
    let prefix = Array(privatePrefix.utf8)
    let hasPrefix = text.count >= prefix.count && prefix.indices.allSatisfy { text[$0] == prefix[$0] }
    let start = hasPrefix ? prefix.count : 0
    var values = bytes.mutableSpan
    var count = 0
    for index in start..<text.count {
      let character = text[index]
      if character <= 0x20 || character == UInt8(ascii: "-") { continue }
      guard let digit = value(character), count < 2 * values.count else { throw wrong }
      values[count / 2] = values[count / 2] << 4 | digit
      count += 1
    }
    guard count == 2 * values.count else { throw wrong }
  }

  private static var wrong: BackupError {
    BackupError(nil, "that is no private key of `keyhole backup --init`: a digit is wrong or missing")
  }

  private static func append(_ bytes: [UInt8], to text: inout SecretBytes) throws(SecretMemoryError) {
    try text.append(bytes.span)
  }
}

extension BackupKey {
  private static func hexadecimal(_ digit: UInt8) -> UInt8 {
    digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
  }

  private static func value(_ character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  private static func digits(_ bytes: some Sequence<UInt8>) -> String {
    String(decoding: bytes.flatMap { [hexadecimal($0 >> 4), hexadecimal($0 & 15)] }, as: UTF8.self)
  }

  /// nil: these are no pairs of hexadecimal digits.
  private static func bytes(_ digits: some Collection<Character>) -> [UInt8]? {
    let values = digits.compactMap { $0.asciiValue.flatMap(value) }
    guard values.count == digits.count, values.count.isMultiple(of: 2) else { return nil }
    return stride(from: 0, to: values.count, by: 2).map { values[$0] << 4 | values[$0 + 1] }
  }
}
