internal import CSystemdBus
import SecretMemory

// Values in messages of sd-bus(3). All of it runs on the thread of the connection.

extension BusValue {
  /// The values that the message has from here on.
  ///
  /// - Throws: `BusError` for a message that can't be read, or without memory for what it holds.
  static func readAll(_ message: OpaquePointer) throws(BusError) -> [BusValue] {
    var values: [BusValue] = []
    while let value = try unsafe read(message) { values.append(value) }
    return values
  }

  /// nil: the container, or the message, has no more.
  private static func read(_ message: OpaquePointer) throws(BusError) -> BusValue? {
    var (type, contents): (CChar, UnsafePointer<CChar>?) = (0, nil)
    let result = unsafe sd_bus_message_peek_type(message, &type, &contents)
    guard result >= 0 else { throw .unreadable }
    guard result > 0 else { return nil }
    let inside = unsafe contents.map { unsafe String(cString: $0) } ?? ""
    switch UInt8(bitPattern: type) {
    case UInt8(ascii: "a") where inside == "y": return .bytes(try unsafe readBytes(message))
    case UInt8(ascii: "a"): return .array(try unsafe readContainer(message, type, contents), of: inside)
    case UInt8(ascii: "r"): return .structure(try unsafe readContainer(message, type, contents))
    case UInt8(ascii: "e"):
      let parts = try unsafe readContainer(message, type, contents)
      guard parts.count == 2 else { throw .unreadable }
      return .entry(parts[0], parts[1])
    case UInt8(ascii: "v"):
      guard let content = try unsafe readContainer(message, type, contents).first else { throw .unreadable }
      return .variant(content)
    default: return try unsafe readBasic(message, type)
    }
  }

  private static func readContainer(
    _ message: OpaquePointer, _ type: CChar, _ contents: UnsafePointer<CChar>?
  ) throws(BusError) -> [BusValue] {
    guard unsafe sd_bus_message_enter_container(message, type, contents) >= 0 else { throw .unreadable }
    let values = try unsafe readAll(message)
    guard unsafe sd_bus_message_exit_container(message) >= 0 else { throw .unreadable }
    return values
  }

  private static func readBytes(_ message: OpaquePointer) throws(BusError) -> BusBytes {
    var (bytes, count): (UnsafeRawPointer?, Int) = (nil, 0)
    guard unsafe sd_bus_message_read_array(message, CChar(UInt8(ascii: "y")), &bytes, &count) >= 0 else {
      throw .unreadable
    }
    do {
      return BusBytes(try unsafe SecretBytes(copying: UnsafeRawBufferPointer(start: bytes, count: count)))
    } catch {
      throw BusError(
        "org.freedesktop.DBus.Error.NoMemory", "there is not enough locked memory for \(count) bytes")
    }
  }

  private static func readBasic(_ message: OpaquePointer, _ type: CChar) throws(BusError) -> BusValue {
    // The longest of them has 8 bytes, and a text is a pointer into the message.
    var number: UInt64 = 0
    let result = unsafe withUnsafeMutablePointer(to: &number) {
      unsafe sd_bus_message_read_basic(message, type, $0)
    }
    guard result > 0 else { throw .unreadable }
    switch UInt8(bitPattern: type) {
    case UInt8(ascii: "b"): return .bool(UInt32(truncatingIfNeeded: number) != 0)
    case UInt8(ascii: "y"): return .byte(UInt8(truncatingIfNeeded: number))
    case UInt8(ascii: "i"): return .int32(Int32(truncatingIfNeeded: number))
    case UInt8(ascii: "u"): return .uint32(UInt32(truncatingIfNeeded: number))
    case UInt8(ascii: "t"): return .uint64(number)
    case UInt8(ascii: "h"): return .descriptor(Int32(truncatingIfNeeded: number))
    case UInt8(ascii: "s"): return .string(unsafe text(number))
    case UInt8(ascii: "o"): return .path(unsafe text(number))
    default: return .other
    }
  }

  /// SAFETY: sd-bus has put the address of a string of the message there.
  @unsafe private static func text(_ address: UInt64) -> String {
    guard let start = unsafe UnsafePointer<CChar>(bitPattern: UInt(address)) else { return "" }
    return unsafe String(cString: start)
  }
}

extension BusValue {
  /// Adds the value to a message. - Throws: `BusError` where it can't be a part of one, as a text with NUL.
  func append(to message: OpaquePointer) throws(BusError) {
    switch self {
    case .bool(let value): try unsafe Self.append(Int32(value ? 1 : 0), "b", to: message)
    case .byte(let value): try unsafe Self.append(value, "y", to: message)
    case .int32(let value): try unsafe Self.append(value, "i", to: message)
    case .uint32(let value): try unsafe Self.append(value, "u", to: message)
    case .uint64(let value): try unsafe Self.append(value, "t", to: message)
    case .string(let text): try unsafe Self.append(text, "s", to: message)
    case .path(let text): try unsafe Self.append(text, "o", to: message)
    case .bytes(let bytes):
      guard unsafe bytes.secret.withUnsafeBytes({ unsafe Self.append($0, to: message) }) else {
        throw .unwritable
      }
    case .ordinaryBytes(let bytes):
      guard unsafe bytes.withUnsafeBytes({ unsafe Self.append($0, to: message) }) else { throw .unwritable }
    case .array(let elements, let type): try unsafe Self.append(elements, "a", type, to: message)
    case .entry(let key, let value):
      try unsafe Self.append([key, value], "e", key.signature + value.signature, to: message)
    case .structure(let members):
      try unsafe Self.append(members, "r", members.map(\.signature).joined(), to: message)
    case .variant(let content): try unsafe Self.append([content], "v", content.signature, to: message)
    case .descriptor, .other: throw .unwritable
    }
  }

  private static func append<Number>(
    _ value: Number, _ type: Unicode.Scalar, to message: OpaquePointer
  ) throws(BusError) {
    var value = value
    let result = unsafe withUnsafePointer(to: &value) {
      unsafe sd_bus_message_append_basic(message, CChar(type.value), $0)
    }
    guard result >= 0 else { throw .unwritable }
  }

  private static func append(
    _ text: String, _ type: Unicode.Scalar, to message: OpaquePointer
  ) throws(BusError) {
    guard !text.utf8.contains(0) else { throw .unwritable }
    let result = unsafe text.withCString {
      unsafe sd_bus_message_append_basic(message, CChar(type.value), $0)
    }
    guard result >= 0 else { throw .unwritable }
  }

  /// False: there is no memory for it.
  private static func append(_ bytes: UnsafeRawBufferPointer, to message: OpaquePointer) -> Bool {
    unsafe sd_bus_message_append_array(message, CChar(UInt8(ascii: "y")), bytes.baseAddress, bytes.count) >= 0
  }

  private static func append(
    _ values: [BusValue], _ type: Unicode.Scalar, _ contents: String, to message: OpaquePointer
  ) throws(BusError) {
    guard unsafe sd_bus_message_open_container(message, CChar(type.value), contents) >= 0 else {
      throw .unwritable
    }
    for value in values { try unsafe value.append(to: message) }
    guard unsafe sd_bus_message_close_container(message) >= 0 else { throw .unwritable }
  }
}

extension BusError {
  fileprivate static let unreadable = BusError(
    "org.freedesktop.DBus.Error.InvalidArgs", "the message can't be read")
  fileprivate static let unwritable = BusError(
    "org.freedesktop.DBus.Error.Failed", "the reply can't be made")
}
