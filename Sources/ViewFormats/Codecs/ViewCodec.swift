/// The grammar of one format.
protocol ViewCodec {
  /// The entries of a file, in its order.
  ///
  /// - Throws: `EINVAL` or `EILSEQ` with the line.
  func entries(of text: Span<UInt8>) throws(ViewError) -> [ViewDocument.Entry]

  /// Writes a value in a style, or as nearly to it as the program reads the same value back.
  ///
  /// - Returns: nil, or why the format can't carry the value; what was written is then to be dropped.
  func write(
    _ value: Span<UInt8>, _ style: SlotStyle, to writer: inout SecretWriter
  ) throws(ViewError) -> String?

  /// Writes the text around the values of a view that is made from a list.
  ///
  /// - Throws: `EINVAL` for a name that the format can't have.
  func lay(out names: [[String]], into layout: inout FreshLayout) throws(ViewError)
}

extension ViewFormat {
  func codec(_ dialect: EnvDialect) -> any ViewCodec {
    switch self {
    case .env: EnvCodec(dialect: dialect)
    case .json: JSONCodec()
    case .ini: IniCodec()
    case .netrc: NetrcCodec()
    case .npmrc: NpmrcCodec()
    case .pgpass: PgpassCodec()
    case .dockerConfig: JSONCodec(isDockerConfig: true)
    case .template: TemplateCodec(dialect: dialect)
    }
  }
}

/// The text of a view that is made from a list, with the places of its values.
struct FreshLayout: ~Copyable {
  var text: SecretWriter
  /// Which name, where, and how.
  private(set) var places: [(index: Int, offset: Int, style: SlotStyle)] = []

  mutating func place(_ index: Int, _ style: SlotStyle) {
    places.append((index, text.count, style))
  }

  mutating func write(_ text: String) throws(ViewError) {
    for byte in text.utf8 { try self.text.append(byte) }
  }

  init() throws(ViewError) {
    text = try SecretWriter(capacity: 1024)
  }
}
