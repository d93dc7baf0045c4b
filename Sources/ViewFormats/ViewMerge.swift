import Platform
import SecretMemory

/// The changes that a written file makes in a view.
public struct ViewMerge: Sendable {
  /// An entry that was there before, with another value.
  public struct Change: Sendable {
    /// The entry of the written file.
    public let entry: ViewDocument.Entry
    /// The item or the setting whose value it is.
    public let reference: String
  }

  /// The form to store: entries that were there before keep their reference.
  public let template: ViewTemplate
  /// One for each reference.
  public let changed: [Change]
  /// Entries that are new, with the reference that was given for them.
  public let added: [Change]
  /// Slots of the stored template whose names are no longer there.
  public let removed: [ViewSlot]
  /// Whether the file is as it was, byte for byte.
  public let isUnchanged: Bool
}

extension ViewDocument {
  /// Compares a written file with what is stored.
  ///
  /// - Parameters:
  ///   - stored: the template before.
  ///   - reference: the reference for an entry that is new.
  ///   - lender: the present values of the stored template.
  /// - Returns: the form to store, and the entries to write.
  /// - Throws: `EINVAL` where two entries with one reference have different values, or where a value stands in the text
  ///   (`ViewTemplate.exposures`); errors of `lender`; `ENOMEM`, `ELOOP`.
  public func merge(
    with stored: ViewTemplate, newReference reference: (Entry) -> String, _ lender: ViewTemplate.Lender
  ) throws(ViewError) -> ViewMerge {
    let known = Dictionary(stored.slots.map { ($0.name, $0) }) { first, _ in first }
    let template = try template { known[$0.name]?.reference ?? reference($0) }
    try checkText(of: template, with: stored, lender)
    var changed: [ViewMerge.Change] = []
    var added: [ViewMerge.Change] = []
    var firsts: [String: Entry] = [:]
    for (entry, slot) in zip(entries, template.slots) {
      let value = try value(of: entry)
      if let first = firsts[slot.reference] {
        guard try self.value(of: first) == value else {
          throw ViewError(
            .EINVAL, line: entry.line, entry: entry.name,
            "it is the same item as \(first.name.joined(separator: " ")), which has another value")
        }
        continue
      }
      firsts[slot.reference] = entry
      let change = ViewMerge.Change(entry: entry, reference: slot.reference)
      guard let old = known[entry.name] else {
        added.append(change)
        continue
      }
      var isEqual = false
      try lender(old) { (bytes) throws(ViewError) in isEqual = value.hasSameBytes(as: bytes) }
      if !isEqual { changed.append(change) }
    }
    let names = Set(entries.map(\.name))
    let removed = stored.slots.filter { !names.contains($0.name) }
    let isUnchanged = changed.isEmpty && added.isEmpty && removed.isEmpty && template.isSame(as: stored)
    return ViewMerge(
      template: template, changed: changed, added: added, removed: removed, isUnchanged: isUnchanged)
  }

  /// A value that stands in a comment, a key or a section's name, of those that are written and of those that are stored.
  private func checkText(
    of template: ViewTemplate, with stored: ViewTemplate, _ lender: ViewTemplate.Lender
  ) throws(ViewError) {
    // The values that the file has are tried by their names, those of the store by the stored slots.
    let entries = Dictionary(entries.map { ($0.name, $0) }) { first, _ in first }
    var exposures = try template.exposures { (slot, body) throws(ViewError) in
      guard let entry = entries[slot.name] else { return }
      let value = try self.value(of: entry)
      try body(value.span)
    }
    if exposures.isEmpty { exposures = try template.exposures(of: stored.slots, lender) }
    if let exposure = exposures.first { throw exposure.error }
  }
}
