import Platform
public import SecretMemory

// Two programs may change a file at the same time: the second one has not seen what the first one has added.
extension ViewDocument {
  /// The entries that are in `present`, and neither in `base` nor in this file.
  func additions(of present: ViewDocument, since base: ViewDocument) -> [Entry] {
    let seen = Set(base.entries.map(\.name)).union(entries.map(\.name))
    return present.entries.filter { !seen.contains($0.name) }
  }

  /// The text of this file with the lines behind it that others have added to `base` meanwhile; nil: they have added none.
  ///
  /// - Throws: `EINVAL` for a format in which an entry is not a line that can stand at the end; `EFBIG`, `ENOMEM`.
  public func keepingAdditions(
    of present: ViewDocument, since base: ViewDocument
  ) throws(ViewError) -> SecretBytes? {
    let additions = additions(of: present, since: base)
    guard let first = additions.first else { return nil }
    guard format == .env || format == .pgpass else {
      throw ViewError(
        .EINVAL, entry: first.name,
        "another program has added it since this one has opened the file; read it again, and write it with that"
      )
    }
    var text = try SecretWriter(capacity: source.count + present.source.count)
    try text.append(source, 0..<source.count)
    for entry in additions {
      if text.count > 0, try text.withWritten(from: text.count - 1, { $0[0] != 0x0A }) {
        try text.append(0x0A)
      }
      try text.append(present.source, present.lines(of: entry))
    }
    return text.finish()
  }

  /// The lines of an entry, from its key to the end of its last line.
  private func lines(of entry: Entry) -> Range<Int> {
    source.withSpan(0..<source.count) { text in
      var start = entry.range.lowerBound
      while start > 0, text[start - 1] != 0x0A { start -= 1 }
      guard let feed = text.firstOffset(of: 0x0A, from: entry.range.upperBound) else {
        return start..<text.count
      }
      return start..<max(start, feed &+ 1)
    }
  }
}
