import Platform
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
    _ line: Span<UInt8>, to secret: inout SecretBytes
  ) throws(Pinentry.Failure) -> Bool {
    guard line.starts(with: "D ") else { return false }
    var position = 2
    while position < line.count {
      var plain = line[position]
      position += 1
      if plain == UInt8(ascii: "%"), line.count - position >= 2 {
        plain = hexadecimal(line[position], line[position + 1]) ?? plain
        position += 2
      }
      let end = secret.count
      do { try secret.resize(to: end + 1) } catch { throw .broken }
      secret[end] = plain
    }
    return true
  }

  /// The byte of two digits; nil: they are none.
  private static func hexadecimal(_ high: UInt8, _ low: UInt8) -> UInt8? {
    guard let high = digit(high), let low = digit(low) else { return nil }
    return high << 4 | low
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}
