import Platform
import SecretMemory

/// Writes the stored form of a template.
struct TemplateWriter: ~Copyable {
  static let version: UInt8 = 1
  private var bytes: SecretWriter

  init(capacity: Int) throws(ViewError) {
    bytes = try SecretWriter(capacity: capacity, limit: .max)
  }

  consuming func finish() -> SecretBytes { bytes.finish() }

  mutating func write(_ template: ViewTemplate) throws(ViewError) {
    try bytes.append(Self.version)
    try writeText(template.format.rawValue)
    try writeText(template.dialect.rawValue)
    try writeNumber(template.text.count)
    try bytes.append(template.text, 0..<template.text.count)
    try writeNumber(template.slots.count)
    var position = 0
    for slot in template.slots {
      try writeNumber(slot.offset &- position)
      position = slot.offset
      try writeNumber(slot.name.count)
      for part in slot.name { try writeText(part) }
      try writeText(slot.reference)
      try writeStyle(slot.style)
    }
  }

  private mutating func writeStyle(_ style: SlotStyle) throws(ViewError) {
    try bytes.append(style.coding.rawValue)
    try writeBytes(style.user)
    try writeNumber(style.spelling.count)
    for step in style.spelling {
      switch step {
      case .verbatim(let count):
        try bytes.append(0)
        try writeNumber(count)
      case .syntax(let text):
        try bytes.append(1)
        try writeBytes(text)
      case .letter: try bytes.append(2)
      case .unit(let mask):
        try bytes.append(3)
        try bytes.append(mask)
      case .pair(let mask):
        try bytes.append(4)
        try bytes.append(mask)
      }
    }
  }

  /// LEB128 without a sign; no number here is negative.
  private mutating func writeNumber(_ number: Int) throws(ViewError) {
    var rest = UInt(bitPattern: number)
    while rest >= 0x80 {
      try bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    try bytes.append(UInt8(truncatingIfNeeded: rest))
  }

  private mutating func writeText(_ text: String) throws(ViewError) { try writeBytes(Array(text.utf8)) }

  private mutating func writeBytes(_ text: [UInt8]) throws(ViewError) {
    try writeNumber(text.count)
    try bytes.append(text)
  }
}

/// Reads it, and refuses every other form of the same.
struct TemplateReader: ~Escapable {
  private let bytes: Span<UInt8>
  private var position = 0

  @_lifetime(copy bytes)
  init(_ bytes: Span<UInt8>) {
    self.bytes = bytes
  }

  static var damage: ViewError { ViewError(.EIO, "the stored form of the view is damaged") }

  mutating func format() throws(ViewError) -> (ViewFormat, EnvDialect) {
    guard try byte() == TemplateWriter.version else { throw Self.damage }
    guard let format = ViewFormat(rawValue: try text()), let dialect = EnvDialect(rawValue: try text()) else {
      throw Self.damage
    }
    return (format, dialect)
  }

  mutating func templateText() throws(ViewError) -> SecretBytes {
    let part = try counted()
    do throws(SecretMemoryError) { return try SecretBytes(copying: bytes.extracting(part)) } catch {
      throw ViewError(error)
    }
  }

  mutating func slots(of textCount: Int) throws(ViewError) -> [ViewSlot] {
    let count = try number(upTo: ViewLimits.entries)
    var slots: [ViewSlot] = []
    var offset = 0
    for _ in 0..<count {
      offset &+= try number(upTo: textCount &- offset)
      var name: [String] = []
      for _ in 0..<(try number(upTo: bytes.count)) { name.append(try text()) }
      slots.append(ViewSlot(name: name, reference: try text(), offset: offset, style: try style()))
    }
    guard position == bytes.count, Set(slots.map(\.name)).count == count else { throw Self.damage }
    return slots
  }

  private mutating func style() throws(ViewError) -> SlotStyle {
    guard let coding = ValueCoding(rawValue: try byte()) else { throw Self.damage }
    var style = SlotStyle(coding: coding)
    style.user = try array()
    for _ in 0..<(try number(upTo: bytes.count)) { style.spelling.append(try step()) }
    return style
  }

  private mutating func step() throws(ViewError) -> SpellingStep {
    switch try byte() {
    case 0: return .verbatim(try number(upTo: ViewLimits.bytes))
    case 1: return .syntax(try array())
    case 2: return .letter
    case 3: return .unit(try byte())
    case 4: return .pair(try byte())
    default: throw Self.damage
    }
  }

  private mutating func byte() throws(ViewError) -> UInt8 {
    guard position < bytes.count else { throw Self.damage }
    defer { position &+= 1 }
    return bytes[position]
  }

  private mutating func number(upTo limit: Int) throws(ViewError) -> Int {
    var number = 0
    for place in 0..<5 {
      let next = try byte()
      number |= Int(next & 0x7F) << (7 &* place)
      guard next < 0x80 else { continue }
      // A zero at the end would be a second form of the same number.
      guard next > 0 || place == 0, number <= limit else { throw Self.damage }
      return number
    }
    throw Self.damage
  }

  private mutating func counted() throws(ViewError) -> Range<Int> {
    let count = try number(upTo: bytes.count)
    guard count <= bytes.count &- position else { throw Self.damage }
    defer { position &+= count }
    return position..<position &+ count
  }

  private mutating func array() throws(ViewError) -> [UInt8] { bytes.extracting(try counted()).array }

  private mutating func text() throws(ViewError) -> String {
    guard let text = bytes.extracting(try counted()).wellFormedText else { throw Self.damage }
    return text
  }
}

extension ViewTemplate {
  convenience init(reading reader: inout TemplateReader) throws(ViewError) {
    let (format, dialect) = try reader.format()
    let text = try reader.templateText()
    guard text.count <= ViewLimits.bytes else { throw TemplateReader.damage }
    self.init(format, dialect, try reader.slots(of: text.count), text)
  }
}
