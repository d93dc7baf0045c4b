/// A message of D-Bus as bytes: what a hostile or careless client can send, and what it gets.
struct RawMessage {
  enum Kind: UInt8 {
    case call = 1
    case reply, error, signal
  }

  var kind = Kind.call
  /// 1: no reply is expected.
  var flags: UInt8 = 0
  var serial: UInt32 = 0
  var path = ""
  var interface = ""
  var member = ""
  var destination = ""
  /// Of a reply, the serial of its call.
  var replySerial: UInt32 = 0
  var error = ""
  var signature = ""
  var body: [UInt8] = []
}

/// Values one after the other, as D-Bus aligns them.
struct RawBody {
  private(set) var bytes: [UInt8] = []

  mutating func align(_ boundary: Int) { while bytes.count % boundary != 0 { bytes.append(0) } }

  mutating func put<Number: FixedWidthInteger>(_ number: Number) {
    align(MemoryLayout<Number>.size)
    for shift in stride(from: 0, to: Number.bitWidth, by: 8) {
      bytes.append(UInt8(truncatingIfNeeded: number >> Number(shift)))
    }
  }

  /// A string or a path.
  mutating func put(_ text: String) {
    put(UInt32(text.utf8.count))
    bytes += Array(text.utf8) + [0]
  }

  mutating func put(signature: String) {
    bytes += [UInt8(signature.utf8.count)] + Array(signature.utf8) + [0]
  }

  mutating func put(_ content: [UInt8]) {
    put(UInt32(content.count))
    bytes += content
  }

  /// An array: `body` puts the elements, whose type has this boundary.
  mutating func array(_ boundary: Int, _ body: (inout RawBody) -> Void) {
    put(UInt32(0))
    let place = bytes.count - 4
    align(boundary)
    let start = bytes.count
    body(&self)
    let count = UInt32(bytes.count - start)
    for index in 0..<4 { bytes[place + index] = UInt8(truncatingIfNeeded: count >> (8 * UInt32(index))) }
  }

  static func of(_ body: (inout RawBody) -> Void) -> [UInt8] {
    var made = RawBody()
    body(&made)
    return made.bytes
  }
}

extension RawMessage {
  private static let littleEndian = UInt8(ascii: "l")

  var bytes: [UInt8] {
    var raw = RawBody()
    for byte in [Self.littleEndian, kind.rawValue, flags, 1] { raw.put(byte) }
    raw.put(UInt32(body.count))
    raw.put(serial)
    raw.array(8) { raw in
      for (code, type, text) in [
        (1, "o", path), (2, "s", interface), (3, "s", member), (6, "s", destination),
      ]
        as [(UInt8, String, String)] where !text.isEmpty
      {
        Self.field(code, type, &raw) { $0.put(text) }
      }
      if !signature.isEmpty { Self.field(8, "g", &raw) { $0.put(signature: signature) } }
    }
    raw.align(8)
    return raw.bytes + body
  }

  private static func field(
    _ code: UInt8, _ type: String, _ raw: inout RawBody, _ body: (inout RawBody) -> Void
  ) {
    raw.align(8)
    raw.put(code)
    raw.put(signature: type)
    body(&raw)
  }

  /// The whole length of a message by its first 16 bytes.
  static func length(_ start: [UInt8]) -> Int {
    let (body, fields) = (Int(integer(start, 4)), Int(integer(start, 12)))
    return 16 + (fields + 7) / 8 * 8 + body
  }

  init(_ bytes: [UInt8]) {
    kind = Kind(rawValue: bytes[1]) ?? .call
    let fields = Int(Self.integer(bytes, 12))
    serial = Self.integer(bytes, 8)
    var place = 16
    while place < 16 + fields {
      place = (place + 7) / 8 * 8
      let (code, type) = (bytes[place], bytes[place + 2])
      place += 4
      if type == UInt8(ascii: "g") {
        let count = Int(bytes[place])
        if code == 8 { signature = Self.text(bytes, place + 1, count) }
        place += count + 2
        continue
      }
      place = (place + 3) / 4 * 4
      let number = Self.integer(bytes, place)
      place += 4
      guard type != UInt8(ascii: "u") else {
        if code == 5 { replySerial = number }
        continue
      }
      let text = Self.text(bytes, place, Int(number))
      switch code {
      case 1: path = text
      case 2: interface = text
      case 3: member = text
      case 4: error = text
      default: break
      }
      place += Int(number) + 1
    }
    body = Array(bytes[((16 + fields + 7) / 8 * 8)...])
  }

  private static func integer(_ bytes: [UInt8], _ place: Int) -> UInt32 {
    (0..<4).reduce(0) { $0 | UInt32(bytes[place + $1]) << (8 * UInt32($1)) }
  }

  private static func text(_ bytes: [UInt8], _ place: Int, _ count: Int) -> String {
    String(decoding: bytes[place..<place + count], as: UTF8.self)
  }
}
