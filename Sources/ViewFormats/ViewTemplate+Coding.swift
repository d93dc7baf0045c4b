import Platform
public import SecretMemory

// The stored form: a version, then numbers in LEB128 and counted bytes. One template has one form.
extension ViewTemplate {
  /// The form to store, without a value. It has to be sealed: comments are in it.
  ///
  /// - Throws: `ENOMEM`.
  public func encoded() throws(ViewError) -> SecretBytes {
    var writer = try TemplateWriter(capacity: text.count + 64 * slots.count)
    try writer.write(self)
    return writer.finish()
  }

  /// Reads the stored form.
  ///
  /// - Throws: `EIO` for what `encoded()` does not write; `ENOMEM`.
  public convenience init(encoded: borrowing SecretBytes) throws(ViewError) {
    var reader = TemplateReader(encoded.span)
    try self.init(reading: &reader)
  }
}
