import Model
import Platform

/// Reads what a `PackedWriter` has written, in the same order.
struct PackedReader {
  private let bytes: [UInt8]
  private var position = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  private mutating func byte() -> UInt8 {
    defer { position &+= 1 }
    return bytes[position]
  }

  mutating func number() -> UInt64 {
    var (number, shift): (UInt64, UInt64) = (0, 0)
    while true {
      let next = byte()
      number |= UInt64(next & 0x7F) << shift
      guard next & 0x80 != 0 else { return number }
      shift &+= 7
    }
  }

  mutating func bool() -> Bool { byte() != 0 }

  private mutating func range() -> Range<Int> {
    let count = Int(truncatingIfNeeded: number())
    defer { position &+= count }
    return position..<position &+ count
  }

  private mutating func content() -> [UInt8] { Array(bytes[range()]) }

  private mutating func text() -> ExactString {
    let range = range()
    return ExactString(utf8: bytes.span.extracting(range)) ?? ""
  }

  mutating func optionalText() -> ExactString? { bool() ? text() : nil }

  mutating func id() -> ItemID {
    guard bool() else { return ItemID(rawValue: text().string) }
    return ItemID(rawValue: PackedUUID(high: fixed(), low: fixed()).text)
  }

  mutating func skipID() {
    if bool() { position &+= 16 } else { _ = range() }
  }

  func isAt(_ key: [UInt8]) -> Bool {
    guard key.count <= bytes.count &- position else { return false }
    return bytes.span.extracting(position..<position &+ key.count).hasSameBytes(as: key.span)
  }

  /// Moves behind what `isAt` has found.
  mutating func skip(_ key: [UInt8]) { position &+= key.count }

  mutating func identity() -> ItemIdentity {
    switch byte() {
    case 0: return .generic(service: text(), account: text())
    case 1:
      var identity = InternetIdentity(server: text(), account: text())
      identity.domain = optionalText()
      identity.protocol = optionalText()
      identity.authenticationType = optionalText()
      identity.path = optionalText()
      let port = number()
      identity.port = port == 0 ? nil : UInt16(truncatingIfNeeded: port &- 1)
      return .internet(identity)
    default: return .other(label: text())
    }
  }

  /// Without its texts, which cost more than the rest of an item.
  mutating func skipIdentity() {
    let kind = byte()
    _ = range()
    guard kind < 2 else { return }
    _ = range()
    guard kind == 1 else { return }
    for _ in 0..<4 where bool() { _ = range() }
    _ = number()
  }

  mutating func time() -> Timestamp {
    let seconds = Int64(bitPattern: fixed())
    return Timestamp(seconds: seconds, nanoseconds: UInt32(truncatingIfNeeded: number()))
  }

  mutating func accessibility() -> Accessibility { Accessibility.allCases[Int(truncatingIfNeeded: number())] }

  mutating func flags() -> [AccessFlags.Flag] {
    let count = number()
    return (0..<count).map { _ in AccessFlags.Flag.allCases[Int(truncatingIfNeeded: number())] }
  }

  mutating func otpauth() -> FurtherSecret? {
    guard bool() else { return nil }
    let size = Int(truncatingIfNeeded: number())
    return FurtherSecret(size: size, modified: time())
  }

  mutating func attributes() -> [ExactString: [UInt8]] {
    let count = number()
    guard count > 0 else { return [:] }
    var attributes: [ExactString: [UInt8]] = [:]
    for _ in 0..<count {
      let name = text()
      attributes[name] = content()
    }
    return attributes
  }

  private mutating func fixed() -> UInt64 {
    var number: UInt64 = 0
    for shift in stride(from: 0, to: 64, by: 8) { number |= UInt64(byte()) << UInt64(shift) }
    return number
  }
}
