import SecretMemory

extension ViewDocument.Entry {
  /// The decoded value.
  func value(in source: borrowing SecretBytes) throws(ViewError) -> SecretBytes {
    var writer = try SecretWriter(capacity: range.count)
    let text = source.span
    var position = range.lowerBound
    for step in steps {
      switch step {
      case .verbatim(let count):
        try writer.append(text.extracting(position..<position + count))
        position += count
      case .syntax(let syntax): position += syntax.count
      default: break
      }
    }
    return writer.finish()
  }
}
