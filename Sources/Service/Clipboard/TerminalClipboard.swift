import Model
import Platform
package import SecretMemory

/// The clipboard that a terminal keeps: the escape sequence OSC 52 of xterm's ctlseqs.
package enum TerminalClipboard {
  /// - Throws: `Failure` where the process has no terminal.
  package static func write(_ secret: borrowing SecretBytes) throws {
    do {
      let terminal = try Descriptor("/dev/tty", .writing)
      let sequence = try sequence(for: secret)
      try Files.write(sequence.span, to: terminal.number)
    } catch let error as Errno {
      throw Failure("/dev/tty", "there is no terminal: \(error)")
    }
  }

  /// The sequence with the secret in base 64 (RFC 4648).
  static func sequence(for secret: borrowing SecretBytes) throws(SecretMemoryError) -> SecretBytes {
    var sequence = try SecretBytes(copying: Array("\u{1B}]52;c;".utf8).span)
    try Base64Encoding.write(secret.span) { (character) throws(SecretMemoryError) in
      try sequence.append([character].span)
    }
    try sequence.append([0x07].span)
    return sequence
  }
}
