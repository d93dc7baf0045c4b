import Platform
import SecretMemory

extension ViewTemplate {
  /// A view made from a list: one entry for each name, without comments.
  ///
  /// - Parameters:
  ///   - format: the grammar; it has to be writable.
  ///   - dialect: of `env`.
  ///   - entries: the name path (`ViewSlot.name`) and the reference of each, in the order of the file.
  /// - Throws: `EINVAL` for a name that the format can't have or has twice, `ELOOP` for a reference to a view or a template,
  ///   `EFBIG`; `EROFS` for `template`, which is made from a text.
  public convenience init(
    _ format: ViewFormat, _ dialect: EnvDialect = .portable, entries: [(name: [String], reference: String)]
  ) throws(ViewError) {
    guard entries.count <= ViewLimits.entries else { throw ViewLimits.tooManyEntries }
    var names: Set<[String]> = []
    for entry in entries {
      try References.check(entry.reference, entry: entry.name)
      guard names.insert(entry.name).inserted else {
        throw ViewError(.EINVAL, entry: entry.name, "it is named twice; each entry needs a name of its own")
      }
    }
    var layout = try FreshLayout()
    try format.codec(dialect).lay(out: entries.map(\.name), into: &layout)
    let slots = layout.places.map { place in
      let entry = entries[place.index]
      return ViewSlot(name: entry.name, reference: entry.reference, offset: place.offset, style: place.style)
    }
    self.init(format, dialect, slots, layout.text.finish())
  }

  /// Writes the value of a slot.
  ///
  /// - Throws: `EILSEQ` where the format can't carry it.
  func write(
    _ value: Span<UInt8>, of slot: ViewSlot, to writer: inout SecretWriter
  ) throws(ViewError) {
    guard let reason = try format.codec(dialect).write(value, slot.style, to: &writer) else { return }
    throw ViewError(.EILSEQ, entry: slot.name, reason)
  }

  /// Whether both have the same text, slots and references.
  func isSame(as other: ViewTemplate) -> Bool {
    format == other.format && dialect == other.dialect && slots == other.slots
      && text == other.text
  }
}

extension ViewLimits {
  static var tooManyEntries: ViewError { ViewError(.EFBIG, "a view has at most \(entries) entries") }
}
