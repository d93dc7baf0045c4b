import Platform
public import SecretMemory

/// A file that was parsed: its entries with their values, and the text around them.
public final class ViewDocument: Sendable {
  /// One name with its value.
  public struct Entry: Sendable {
    /// As `ViewSlot.name`.
    public let name: [String]
    /// Where the value begins, counted from 1.
    public let line: Int
    /// Where the value stands in the source, its quotes included.
    let range: Range<Int>
    let coding: ValueCoding
    /// How the value is spelled in `range`.
    let steps: [SpellingStep]
    var user: [UInt8] = []
  }

  /// The grammar by which it was parsed.
  public let format: ViewFormat
  /// The dialect by which it was parsed.
  public let dialect: EnvDialect
  /// In the order of the file; names are unique.
  public let entries: [Entry]
  let source: SecretBytes

  /// Parses a file.
  ///
  /// - Throws: `EINVAL` with the line for what the program would refuse, read differently from others of the portable dialect,
  ///   or fill in from elsewhere (`$NAME`); `EILSEQ`, `EFBIG`, `ENOMEM`. `EROFS` for a format that is not writable.
  public init(
    parsing source: consuming SecretBytes, as format: ViewFormat, _ dialect: EnvDialect = .portable
  ) throws(ViewError) {
    guard source.count <= ViewLimits.bytes else { throw SecretWriter.tooLong(ViewLimits.bytes) }
    self.format = format
    self.dialect = dialect
    entries = try Self.checked(try format.codec(dialect).entries(of: source.span))
    self.source = source
  }

  private static func checked(_ entries: [Entry]) throws(ViewError) -> [Entry] {
    guard entries.count <= ViewLimits.entries else {
      throw ViewLimits.tooManyEntries
    }
    var lines: [[String]: Int] = [:]
    for entry in entries {
      if let first = lines.updateValue(entry.line, forKey: entry.name) {
        throw ViewError(
          .EINVAL, line: entry.line, entry: entry.name,
          "it stands in line \(first) already; remove one of them")
      }
    }
    return entries
  }

  /// The decoded value of an entry.
  ///
  /// - Throws: `ENOMEM`.
  public func value(of entry: Entry) throws(ViewError) -> SecretBytes {
    try entry.value(in: source)
  }

  /// The template in which each entry has the reference that `reference` gives.
  ///
  /// - Throws: `ENOMEM`; `ELOOP` for a reference to a view or a template.
  public func template(_ reference: (Entry) -> String) throws(ViewError) -> ViewTemplate {
    var text = try SecretWriter(capacity: source.count, limit: ViewLimits.bytes)
    var slots: [ViewSlot] = []
    var position = 0
    for entry in entries {
      try text.append(source, position..<entry.range.lowerBound)
      position = entry.range.upperBound
      let path = reference(entry)
      try References.check(path, entry: entry.name)
      slots.append(
        ViewSlot(name: entry.name, reference: path, offset: text.count, style: try style(of: entry)))
    }
    try text.append(source, position..<source.count)
    return ViewTemplate(format, dialect, slots, text.finish())
  }

  /// The coding alone where it spells the value as the source does; else with the steps.
  private func style(of entry: Entry) throws(ViewError) -> SlotStyle {
    let plain = SlotStyle(coding: entry.coding, user: entry.user)
    let value = try value(of: entry)
    var writer = try SecretWriter(capacity: entry.range.count, limit: ViewLimits.bytes)
    let codec = format.codec(dialect)
    if try codec.write(value.span, plain, to: &writer) == nil, writer.hasSameBytes(as: source, entry.range) {
      return plain
    }
    return SlotStyle(coding: entry.coding, spelling: entry.steps, user: entry.user)
  }
}
