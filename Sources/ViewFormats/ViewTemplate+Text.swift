import Platform
public import SecretMemory

extension ViewTemplate {
  /// - Throws: `EILSEQ` with the line for a new text of a template that is not UTF-8. One that is stored already is read as it is.
  public static func checkTemplateText(_ text: borrowing SecretBytes) throws(ViewError) {
    let bytes = text.span
    guard let fault = UTF8Text.fault(in: bytes) else { return }
    let line = bytes.extracting(0..<fault).indices.count { bytes[$0] == 0x0A } + 1
    throw ViewError(.EILSEQ, line: line, "the text is not UTF-8")
  }

  /// A view of format `template`: any text with references `{{ PATH }}` and `{{ PATH | FILTER }}`.
  ///
  /// It is read in one pass; what a value holds is never read as a reference. `\{{` stands for `{{`. Filters:
  /// `json` (a string with its quotes), `env` (as the dialect needs it), `ini` (one line without blanks at its ends),
  /// `url` (percent-encoded but for RFC 3986's unreserved characters), `base64` (RFC 4648), `line` (without one line feed at its
  /// end; `EILSEQ` for more lines).
  ///
  /// - Throws: `EINVAL` with the line for a reference that is not closed, is empty or has an unknown filter; `ELOOP`, `EFBIG`.
  public convenience init(
    templateText: borrowing SecretBytes, _ dialect: EnvDialect = .portable
  ) throws(ViewError) {
    guard templateText.count <= ViewLimits.bytes else { throw SecretWriter.tooLong(ViewLimits.bytes) }
    var scanner = TemplateScanner(templateText.span)
    let text = try scanner.scan()
    self.init(.template, dialect, scanner.slots, text)
  }
}
