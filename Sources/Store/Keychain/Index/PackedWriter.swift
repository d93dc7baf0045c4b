import Model

/// Writes the values of an item one after the other. Numbers have seven bits in each byte, the lowest first (LEB128).
struct PackedWriter {
  private(set) var bytes: [UInt8] = []

  init() { bytes.reserveCapacity(192) }

  mutating func number(_ number: UInt64) {
    var rest = number
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(truncatingIfNeeded: rest))
  }

  mutating func bool(_ flag: Bool) { bytes.append(flag ? 1 : 0) }

  private mutating func content(_ content: [UInt8]) {
    number(UInt64(content.count))
    bytes += content
  }

  private mutating func text(_ text: ExactString) {
    number(UInt64(text.utf8.count))
    bytes += text.utf8
  }

  mutating func optionalText(_ content: ExactString?) {
    bool(content != nil)
    if let content { text(content) }
  }

  /// A UUID in lower-case text takes 16 bytes.
  mutating func id(_ id: ItemID) {
    let uuid = PackedUUID(id.rawValue)
    bool(uuid != nil)
    guard let uuid else { return text(ExactString(id.rawValue)) }
    fixed(uuid.high)
    fixed(uuid.low)
  }

  mutating func identity(_ identity: ItemIdentity) {
    switch identity {
    case .generic(let service, let account):
      bytes.append(0)
      text(service)
      text(account)
    case .internet(let internet):
      bytes.append(1)
      text(internet.server)
      text(internet.account)
      optionalText(internet.domain)
      optionalText(internet.protocol)
      optionalText(internet.authenticationType)
      optionalText(internet.path)
      number(internet.port.map { UInt64($0) &+ 1 } ?? 0)
    case .other(let label):
      bytes.append(2)
      text(label)
    }
  }

  mutating func time(_ time: Timestamp) {
    fixed(UInt64(bitPattern: time.seconds))
    number(UInt64(time.nanoseconds))
  }

  mutating func accessibility(_ accessibility: Accessibility) {
    number(UInt64(Accessibility.allCases.firstIndex(of: accessibility) ?? 0))
  }

  mutating func flags(_ flags: [AccessFlags.Flag]) {
    number(UInt64(flags.count))
    for flag in flags { number(UInt64(AccessFlags.Flag.allCases.firstIndex(of: flag) ?? 0)) }
  }

  mutating func otpauth(_ otpauth: FurtherSecret?) {
    bool(otpauth != nil)
    guard let otpauth else { return }
    number(UInt64(bitPattern: Int64(otpauth.size)))
    time(otpauth.modified)
  }

  mutating func attributes(_ attributes: [ExactString: [UInt8]]) {
    number(UInt64(attributes.count))
    for (name, value) in attributes.sorted(by: { $0.key < $1.key }) {
      text(name)
      content(value)
    }
  }

  private mutating func fixed(_ number: UInt64) {
    for shift in stride(from: 0, to: 64, by: 8) {
      bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(shift)))
    }
  }
}

/// The 128 bits of a UUID in lower-case text.
struct PackedUUID {
  private(set) var high: UInt64 = 0
  private(set) var low: UInt64 = 0

  init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

  /// nil: another text.
  init?(_ text: String) {
    let text = text.utf8Span.span
    guard text.count == 36 else { return nil }
    for index in text.indices {
      let byte = text[index]
      if Self.isHyphen(index) {
        guard byte == UInt8(ascii: "-") else { return nil }
        continue
      }
      guard let digit = Self.value(ofDigit: byte) else { return nil }
      high = high << 4 | low >> 60
      low = low << 4 | digit
    }
  }

  var text: String {
    var (high, low) = (high, low)
    // SAFETY: 36 elements are initialized, as many as there is room for.
    return unsafe String(unsafeUninitializedCapacity: 36) { bytes in
      for index in 0..<36 {
        if Self.isHyphen(index) {
          unsafe bytes[index] = UInt8(ascii: "-")
          continue
        }
        let digit = UInt8(truncatingIfNeeded: high >> 60)
        unsafe bytes[index] = digit &+ UInt8(ascii: digit < 10 ? "0" : "W")
        (high, low) = (high << 4 | low >> 60, low << 4)
      }
      return 36
    }
  }

  private static func isHyphen(_ index: Int) -> Bool {
    index == 8 || index == 13 || index == 18 || index == 23
  }

  private static func value(ofDigit byte: UInt8) -> UInt64? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt64(byte &- UInt8(ascii: "0"))
    case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt64(byte &- UInt8(ascii: "a") &+ 10)
    default: nil
    }
  }
}
