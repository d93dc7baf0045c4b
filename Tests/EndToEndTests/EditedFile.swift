/// A file that the editors change: what it holds, and what it is to hold then.
struct EditedFile: Sendable {
  let path: String
  let type: String?
  let before: [UInt8]
  /// In which line something is put in.
  var line = 0
  /// The inserted text, the first time and the second.
  let text: @Sendable (_ marker: String, _ time: Int) -> String
  /// The content of the file after that many times.
  let after: @Sendable (_ marker: String, _ times: Int) -> [UInt8]
  var isBinary = false

  var isSecret: Bool { type == nil }

  var folder: String { String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]) }
  var name: String { String(path[path.index(after: path.lastIndex(of: "/") ?? path.startIndex)...]) }

  static let string = EditedFile(
    path: "defaults/app/theme", type: "string", before: Array("light\n".utf8),
    text: { "\($0)\($1) " },
    after: { marker, times in
      Array(((1...times).reversed().map { "\(marker)\($0) " }.joined() + "light\n").utf8)
    })

  static let integer = EditedFile(
    path: "defaults/app/volume", type: "integer", before: Array("42\n".utf8), text: { "\($1)" },
    after: { Array(((1...$1).reversed().map { "\($0)" }.joined() + "42\n").utf8) })

  static let dictionary = EditedFile(
    path: "defaults/app/prefs", type: "dict", before: Array("{\n  \"z\": [\n    1.5\n  ]\n}\n".utf8), line: 1,
    text: { "\"k\($1)\": \"\($0)\"," },
    after: { marker, times in
      let lines = (1...times).map { "  \"k\($0)\": \"\(marker)\",\n" }
      return Array("{\n\(lines.joined())  \"z\": [\n    1.5\n  ]\n}\n".utf8)
    })

  static let secret = EditedFile(
    path: "keychain/generic/srv/peter/value", type: nil, before: Array("hunter2".utf8),
    text: { "\($0)\($1) " },
    after: { marker, times in
      Array(((1...times).reversed().map { "\(marker)\($0) " }.joined() + "hunter2").utf8)
    })

  static let key = EditedFile(
    path: "keychain/generic/srv/pem/value", type: nil,
    before: Array("-----BEGIN KEY-----\nMIIB\n-----END KEY-----\n".utf8), line: 1,
    text: { "\($0)\($1)" },
    after: { marker, times in
      let text = (1...times).reversed().map { "\(marker)\($0)" }.joined()
      return Array("-----BEGIN KEY-----\n\(text)MIIB\n-----END KEY-----\n".utf8)
    })

  static let bytes = EditedFile(
    path: "keychain/internet/my.server/peter;protocol=ssh/value", type: nil,
    before: [0x00, 0xFF, 0x0A, 0xC3, 0x28, 0x0D, 0x0A, 0x7F, 0x80],
    text: { "\($0)\($1)" },
    after: { marker, times in
      let text = (1...times).reversed().map { "\(marker)\($0)" }.joined()
      return Array(text.utf8) + [0x00, 0xFF, 0x0A, 0xC3, 0x28, 0x0D, 0x0A, 0x7F, 0x80]
    }, isBinary: true)

  static let all = [string, integer, dictionary, secret, key, bytes]
}
