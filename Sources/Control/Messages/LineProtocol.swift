import Model

/// The protocol of Keyhole 0.1, version 1: a request is a line, and the answer a text up to the end of the connection.
///
/// It is known here as far as a program of that version has to get an answer that it can show: a mount outlives the
/// update of the package, and wrappers are linked into other people's programs.
enum LineProtocol {
  /// Each request began with a small letter; no kind of message does.
  static func isBeginning(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
  }

  static let refusal =
    "the mount is served by a newer version of Keyhole than this program; update the program, or mount with its version"

  /// The reply to a client that began with these bytes; nil: more of them are needed.
  static func answer(to bytes: [UInt8]) -> [UInt8]? {
    guard let end = bytes.firstIndex(where: { $0 == 0x0A || $0 == 0x20 }) else {
      // None of its words was longer.
      return bytes.count < 16 ? nil : []
    }
    switch String(decoding: bytes[..<end], as: UTF8.self) {
    case "lock", "unlock", "permit", "choose", "rules": return Array(refusal.utf8)
    case "keychain": return failureFrame
    // An answer would be taken for an item's path, or for leave to unmount.
    default: return []
    }
  }

  /// A frame as `keychain` expects it: its kind (101, a failure), no secret, and the error with its text.
  private static var failureFrame: [UInt8] {
    var error = WireWriter()
    error.put(StoreError.unreachable(reason: refusal))
    var frame = WireWriter()
    frame.put(101 as UInt8)
    frame.put(UInt32.max)
    frame.put(error.bytes)
    return frame.bytes
  }
}
