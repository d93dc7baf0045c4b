/// A message of D-Bus, little-endian: calls with texts are written, and of what comes the first texts or the first
/// number is read.
struct BusMessage {
  enum Kind: UInt8 {
    case call = 1
    case answer = 2
    case failure = 3
    case signal = 4
  }

  private enum Field {
    static let path: UInt8 = 1
    static let interface: UInt8 = 2
    static let member: UInt8 = 3
    static let answered: UInt8 = 5
    static let destination: UInt8 = 6
    static let signature: UInt8 = 8
    static let descriptors: UInt8 = 9
  }

  private(set) var kind: Kind?
  private(set) var path = ""
  private(set) var interface = ""
  private(set) var member = ""
  /// The number of the call that is answered.
  private(set) var answered: UInt32 = 0
  /// A descriptor comes with it.
  private(set) var hasDescriptor = false
  private var signature = ""
  private var body: [UInt8] = []

  /// The number or truth value that the content begins with, in a variant or a structure too; nil: none does.
  var number: UInt32? {
    var reader = Reader(body)
    var signature = signature[...]
    if signature.hasPrefix("v") { signature = reader.signature()[...] }
    if signature.hasPrefix("(") {
      reader.align(8)
      signature = signature.dropFirst()
    }
    return signature.hasPrefix("u") || signature.hasPrefix("b") ? reader.integer() : nil
  }
}

extension BusMessage {
  /// The texts that the content begins with.
  var texts: [String] {
    var reader = Reader(body)
    return signature.prefix { $0 == "s" }.map { _ in reader.text() }
  }
}

extension BusMessage {
  /// The text that a variant holds; nil: it holds something else.
  var variantText: String? {
    guard signature == "v" else { return nil }
    var reader = Reader(body)
    return ["s", "o"].contains(reader.signature()) ? reader.text() : nil
  }

  /// The sessions that logind lists: each with its user and its object (`a(susso)`).
  var sessions: [(user: UInt32, path: String)] {
    guard signature == "a(susso)" else { return [] }
    var reader = Reader(body)
    guard let length = reader.integer() else { return [] }
    reader.align(8)
    let end = reader.position + Int(length)
    var sessions: [(UInt32, String)] = []
    while reader.position < min(end, body.count) {
      reader.align(8)
      _ = reader.text()
      guard let user = reader.integer() else { break }
      for _ in 0..<2 { _ = reader.text() }
      sessions.append((user, reader.text()))
    }
    return sessions
  }
}

extension BusMessage {
  static func call(
    serial: UInt32, to name: String, path: String, interface: String, method: String, arguments: [String]
  ) -> [UInt8] {
    var (body, fields) = (Writer(), Writer())
    for argument in arguments { body.put(argument) }
    fields.put(Field.path, "o", path)
    fields.put(Field.interface, "s", interface)
    fields.put(Field.member, "s", method)
    fields.put(Field.destination, "s", name)
    if !arguments.isEmpty {
      fields.put(Field.signature, signature: String(repeating: "s", count: arguments.count))
    }
    var message = Writer()
    message.bytes = [UInt8(ascii: "l"), Kind.call.rawValue, 0, 1]
    for number in [UInt32(body.bytes.count), serial, UInt32(fields.bytes.count)] { message.put(number) }
    message.bytes += fields.bytes
    message.align(8)
    return message.bytes + body.bytes
  }

  /// How long the message is that begins here; nil: that has not come yet.
  static func length(of bytes: [UInt8]) -> Int? {
    guard bytes.count >= 16 else { return nil }
    var reader = Reader(bytes)
    reader.skip(4)
    let body = Int(reader.integer() ?? 0)
    reader.skip(4)
    let fields = Int(reader.integer() ?? 0)
    return (16 + fields + 7) / 8 * 8 + body
  }

  /// A whole message; what it does not have is empty.
  init(_ bytes: [UInt8]) {
    guard bytes.first == UInt8(ascii: "l") else { return }
    kind = Kind(rawValue: bytes[1])
    var reader = Reader(bytes)
    reader.skip(4)
    let bodyLength = Int(reader.integer() ?? 0)
    reader.skip(4)
    let end = 16 + Int(reader.integer() ?? 0)
    while reader.position < end, readField(&reader) {}
    body = Array(bytes.suffix(bodyLength))
  }

  /// False: it can't be read on.
  private mutating func readField(_ reader: inout Reader) -> Bool {
    reader.align(8)
    let field = reader.byte()
    switch reader.signature() {
    case "s", "o": take(reader.text(), as: field)
    case "g": take(reader.signature(), as: field)
    case "u":
      guard let number = reader.integer() else { return false }
      if field == Field.answered { answered = number }
      if field == Field.descriptors { hasDescriptor = number > 0 }
    default: return false
    }
    return true
  }

  private mutating func take(_ text: String, as field: UInt8) {
    switch field {
    case Field.path: path = text
    case Field.interface: interface = text
    case Field.member: member = text
    case Field.signature: signature = text
    default: break
    }
  }
}

extension BusMessage {
  private struct Writer {
    var bytes: [UInt8] = []

    mutating func align(_ size: Int) {
      while bytes.count % size != 0 { bytes.append(0) }
    }

    mutating func put(_ number: UInt32) {
      align(4)
      for shift in [0, 8, 16, 24] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: number >> shift)) }
    }

    mutating func put(_ text: String) {
      put(UInt32(text.utf8.count))
      bytes += Array(text.utf8) + [0]
    }

    mutating func put(signature: String) {
      bytes.append(UInt8(signature.utf8.count))
      bytes += Array(signature.utf8) + [0]
    }

    mutating func put(_ field: UInt8, _ type: String, _ text: String) {
      align(8)
      bytes.append(field)
      put(signature: type)
      put(text)
    }

    mutating func put(_ field: UInt8, signature: String) {
      align(8)
      bytes.append(field)
      put(signature: "g")
      put(signature: signature)
    }
  }

  /// Reads what may be anything: beyond the end everything is empty.
  private struct Reader {
    private let bytes: [UInt8]
    private(set) var position = 0

    init(_ bytes: [UInt8]) {
      self.bytes = bytes
    }

    mutating func skip(_ count: Int) {
      position = min(bytes.count, position + count)
    }

    mutating func align(_ size: Int) {
      skip((size - position % size) % size)
    }

    mutating func byte() -> UInt8 {
      guard position < bytes.count else { return 0 }
      defer { position += 1 }
      return bytes[position]
    }

    mutating func integer() -> UInt32? {
      align(4)
      guard position + 4 <= bytes.count else { return nil }
      defer { position += 4 }
      return bytes[position..<position + 4].reversed().reduce(0) { $0 << 8 | UInt32($1) }
    }

    mutating func text() -> String {
      take(Int(integer() ?? 0))
    }

    mutating func signature() -> String {
      take(Int(byte()))
    }

    /// A text, and the zero byte after it.
    private mutating func take(_ count: Int) -> String {
      guard position + count < bytes.count else {
        position = bytes.count
        return ""
      }
      defer { position += count + 1 }
      return String(decoding: bytes[position..<position + count], as: UTF8.self)
    }
  }
}
