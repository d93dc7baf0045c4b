/// Settings as the text of their files, and back: SPECIFICATION.md, section 3.
public struct SettingCodec: Sendable {
  private let propertyLists: any PropertyListCoding

  /// - Parameter propertyLists: reads and writes XML property lists, for what JSON can't express.
  public init(propertyLists: any PropertyListCoding) {
    self.propertyLists = propertyLists
  }

  /// The content of the file of a key with this value.
  ///
  /// - Throws: what the writer of property lists throws, and only for values that JSON can't say.
  public func content(of value: SettingValue) throws(StoreError) -> [UInt8] {
    if case .data(let bytes) = value { return bytes }
    guard let text = value.scalarText else { return try container(value) }
    return Array(text.utf8) + [ASCII.lineFeed]
  }

  /// The exact length of `content(of:)`; only an XML property list is laid out for it.
  public func size(of value: SettingValue) throws(StoreError) -> Int {
    if case .data(let bytes) = value { return bytes.count }
    guard let text = value.scalarText else { return try containerSize(value) }
    return text.utf8.count + 1
  }

  /// The value that `content` has under `type`.
  ///
  /// - Throws: `invalidValue` where it has none; the reason does not hold the content.
  public func value(of content: [UInt8], as type: SettingType) throws(StoreError) -> SettingValue {
    guard let value = read(content, as: type) else {
      throw .invalidValue(reason: "not \(type.requirement)")
    }
    return value
  }

  /// The value of a new key, whose type is that of its content.
  ///
  /// A bool, number or date is taken for one only where its canonical text is what was written, so that
  /// what a program reads back is what it wrote; everything else is text, and what is no text is data.
  public func inferred(from content: [UInt8]) -> SettingValue {
    if content.isEmpty { return .data([]) }
    if let scalar = canonicalScalar(content) ?? json(content) { return scalar }
    return read(content, as: .string) ?? .data(content)
  }
}

extension SettingValue {
  /// The text of a value that is one line, or a string; nil for data and for what has values inside.
  fileprivate var scalarText: String? {
    switch self {
    case .string(let text): text.string
    case .integer(let number): number.description
    case .real(let number): number.settingText
    case .bool(let flag): flag ? "true" : "false"
    case .date(let date): date.description
    case .data, .uid, .array, .dictionary: nil
    }
  }

  /// Whether no value inside lies deeper than `levels`; what reads and writes values is recursive.
  fileprivate func fits(levels: Int) -> Bool {
    switch self {
    case .array(let elements): levels > 0 && elements.allSatisfy { $0.fits(levels: levels - 1) }
    case .dictionary(let members): levels > 0 && members.values.allSatisfy { $0.fits(levels: levels - 1) }
    default: true
    }
  }
}

extension Double {
  /// Swift's description, but for NaN, which is `nan` whatever its sign and payload.
  var settingText: String { isNaN ? "nan" : description }
}

extension SettingCodec {
  private func container(_ value: SettingValue) throws(StoreError) -> [UInt8] {
    if let text = JSONLayout.append(value, to: []) { return text }
    return try propertyLists.xml(value)
  }

  /// A deep value is many times larger laid out than it was written, so it is not laid out to be measured.
  private func containerSize(_ value: SettingValue) throws(StoreError) -> Int {
    if let length = JSONLayout.append(value, to: JSONLength()) { return length.count }
    return try propertyLists.xml(value).count
  }

  private func read(_ content: [UInt8], as type: SettingType) -> SettingValue? {
    switch type {
    case .data: .data(content)
    case .string: text(content)
    case .array, .dictionary: isXML(content) ? xml(content, as: type) : fed(content, as: type)
    case .integer, .real, .bool, .date: fed(content, as: type)
    }
  }

  /// One reader judges what is written piece by piece and what is committed, so that the two agree.
  private func fed(_ content: [UInt8], as type: SettingType) -> SettingValue? {
    var reading = type.reading
    guard reading.append(content.span) else { return nil }
    return reading.finish()
  }

  private func text(_ content: [UInt8]) -> SettingValue? {
    let line = content.last == ASCII.lineFeed ? content.dropLast() : content[...]
    // No property list can hold a NUL.
    guard !line.contains(0), let text = String(validating: line, as: UTF8.self) else { return nil }
    return .string(ExactString(text))
  }

  private func xml(_ content: [UInt8], as type: SettingType) -> SettingValue? {
    guard let value = propertyLists.value(xml: content), value.type == type else { return nil }
    return value.fits(levels: JSONReading.maximumDepth) ? value : nil
  }

  private func isXML(_ content: [UInt8]) -> Bool {
    content.first { !ASCII.isBlank($0) } == ASCII.less
  }

  private func canonicalScalar(_ content: [UInt8]) -> SettingValue? {
    let line = content.last == ASCII.lineFeed ? content.dropLast() : content[...]
    // Longer than the longest real, integer and date.
    guard line.count <= 64 else { return nil }
    for type in [SettingType.bool, .integer, .real, .date] {
      guard let value = fed(Array(line), as: type), let text = value.scalarText else { continue }
      guard !value.isNonFinite, text.utf8.elementsEqual(line) else { continue }
      return value
    }
    return nil
  }

  private func json(_ content: [UInt8]) -> SettingValue? {
    switch content.first(where: { !ASCII.isBlank($0) }) {
    case ASCII.openBracket: fed(content, as: .array)
    case ASCII.openBrace: fed(content, as: .dictionary)
    default: nil
    }
  }
}

extension SettingValue {
  /// `inf` and `nan` are words in a new file, so they stay strings.
  fileprivate var isNonFinite: Bool {
    if case .real(let number) = self { !number.isFinite } else { false }
  }
}

extension SettingType {
  /// The required content, in words.
  fileprivate var requirement: String {
    switch self {
    case .string: "UTF-8 text without NUL"
    case .integer: "an integer between -2^63 and 2^64-1"
    case .real: "a decimal number"
    case .bool: "true or false"
    case .date: "a date like 2026-11-21T07:53:00Z or 2026-11-21T07:53:00.25Z"
    case .data: "data"
    case .array: "a JSON array without null, or an XML property list with an array"
    case .dictionary: "a JSON object without null, or an XML property list with a dictionary"
    }
  }
}
