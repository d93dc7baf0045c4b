import Platform
public import SecretMemory

/// A view without its values: the text between them, and a slot for each.
///
/// It is what is stored of a view, in the form of `encoded()`, sealed: text of comments is a person's own.
public final class ViewTemplate: Sendable {
  /// Lends the value of a reference for the time of a call, or throws why it can't: a missing item is `ENOENT`, a locked one
  /// `ENOKEY`. Called once for each slot, in the order of the file.
  public typealias Lender = (
    _ slot: ViewSlot, _ body: (Span<UInt8>) throws(ViewError) -> Void
  ) throws(ViewError) -> Void

  /// The grammar.
  public let format: ViewFormat
  /// The dialect; other formats than `env` ignore it, but for the filter `env` of templates.
  public let dialect: EnvDialect
  /// In the order of the file.
  public let slots: [ViewSlot]
  /// The text without the values.
  let text: SecretBytes

  init(_ format: ViewFormat, _ dialect: EnvDialect, _ slots: [ViewSlot], _ text: consuming SecretBytes) {
    self.format = format
    self.dialect = dialect
    self.slots = slots
    self.text = text
  }
}

extension ViewTemplate {
  /// The file with all values.
  ///
  /// - Throws: the first error of `lender`; `EILSEQ` with the entry where the format can't carry a value; `EFBIG`; `ENOMEM`.
  public func render(_ lender: Lender) throws(ViewError) -> SecretBytes {
    var writer = try SecretWriter(capacity: text.count + 64 * slots.count, limit: ViewLimits.bytes)
    try render(into: &writer, lender)
    return writer.finish()
  }

  /// The file with a reference `{{ PATH }}` in the place of each value, for people.
  ///
  /// - Throws: `EFBIG`, `ENOMEM`.
  public func outline() throws(ViewError) -> SecretBytes {
    var writer = try SecretWriter(capacity: text.count + 64 * slots.count, limit: ViewLimits.bytes)
    var position = 0
    for slot in slots {
      try writer.append(text, position..<slot.offset)
      position = slot.offset
      try writer.append(Array("{{ \(slot.reference) }}".utf8))
    }
    try writer.append(text, position..<text.count)
    return writer.finish()
  }

  /// The length of the file in bytes, without a copy of it.
  ///
  /// - Throws: as `render`.
  public func length(_ lender: Lender) throws(ViewError) -> Int {
    var length = text.count
    for slot in slots {
      try lender(slot) { (value) throws(ViewError) in
        var writer = try SecretWriter(capacity: value.count + 16, limit: ViewLimits.bytes)
        try write(value, of: slot, to: &writer)
        length = min(length, ViewLimits.bytes + 1) &+ writer.count
      }
    }
    guard length <= ViewLimits.bytes else { throw SecretWriter.tooLong(ViewLimits.bytes) }
    return length
  }

  /// The first entry that the format, or the dialect, can't carry, for each such entry; errors of `lender` are among them.
  /// Empty: the view can be rendered.
  public func faults(_ lender: Lender) -> [ViewError] {
    slots.compactMap { slot in
      do throws(ViewError) {
        try lender(slot) { (value) throws(ViewError) in
          var writer = try SecretWriter(capacity: value.count + 16, limit: ViewLimits.bytes)
          try write(value, of: slot, to: &writer)
        }
        return nil
      } catch {
        return error
      }
    }
  }

  /// The same file with other references: of items that were moved.
  public func replacingReferences(_ reference: (ViewSlot) -> String) throws(ViewError) -> ViewTemplate {
    ViewTemplate(format, dialect, slots.map { $0.withReference(reference($0)) }, try .copy(of: text))
  }

  /// The same file for another dialect. `faults` says which values it can't carry.
  public func replacingDialect(_ dialect: EnvDialect) throws(ViewError) -> ViewTemplate {
    ViewTemplate(format, dialect, slots, try .copy(of: text))
  }

  private func render(into writer: inout SecretWriter, _ lender: Lender) throws(ViewError) {
    var position = 0
    for slot in slots {
      try writer.append(text, position..<slot.offset)
      position = slot.offset
      // A closure can't change what is lent to the function, so the value is written beside and then added.
      var value = try SecretWriter(capacity: 256, limit: ViewLimits.bytes)
      try lender(slot) { (bytes) throws(ViewError) in try write(bytes, of: slot, to: &value) }
      let written = value.finish()
      try writer.append(written, 0..<written.count)
    }
    try writer.append(text, position..<text.count)
  }
}
