import SecretMemory

/// Lines of the Assuan protocol, in which a program and a pinentry talk (libassuan, chapter "Implementation").
enum Assuan {
  /// The rest of a line whose text may hold every character.
  static func escaped(_ text: String) -> String {
    // By scalars: CR LF is one Character, which is neither of the two.
    text.unicodeScalars.reduce(into: "") { line, scalar in
      switch scalar {
      case "%": line += "%25"
      case "\n": line += "%0A"
      case "\r": line += "%0D"
      default: line.unicodeScalars.append(scalar)
      }
    }
  }

  /// Whether a line ends the answer to a command. False: another line follows.
  ///
  /// - Throws: what an error's number means (libgpg-error; the upper bits name the program).
  static func isOK(_ line: String) throws(Pinentry.Failure) -> Bool {
    if line.hasPrefix("OK") { return true }
    guard line.hasPrefix("ERR ") else {
      if line.isEmpty { throw .broken }
      return false
    }
    let number = line.dropFirst(4).split(separator: " ").first.flatMap { Int($0) } ?? 0
    switch number & 0xFFFF {
    case 99: throw .cancelled
    case 114: throw .notConfirmed
    case 62: throw .late
    default: throw .broken
    }
  }

  /// Appends what a line `D …` holds, with `%XX` as the byte that it stands for.
  ///
  /// - Returns: whether the line is one.
  /// - Throws: `broken` where there is no memory for it.
  static func append(
    _ line: UnsafeRawBufferPointer, to secret: inout SecretBytes
  ) throws(Pinentry.Failure) -> Bool {
    guard unsafe line.starts(with: "D ".utf8) else { return false }
    var rest = unsafe line.dropFirst(2)
    while let byte = unsafe rest.popFirst() {
      var plain = byte
      if byte == UInt8(ascii: "%"), unsafe rest.count >= 2 {
        let digits = unsafe String(decoding: rest.prefix(2), as: UTF8.self)
        plain = UInt8(digits, radix: 16) ?? byte
        unsafe rest = unsafe rest.dropFirst(2)
      }
      let isKept: Void? = try? unsafe withUnsafeBytes(of: &plain) { try unsafe secret.append($0) }
      guard isKept != nil else { throw .broken }
    }
    return true
  }
}
