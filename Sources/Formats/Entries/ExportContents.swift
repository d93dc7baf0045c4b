public import Model
public import SecretMemory

/// The content of an export: settings as they are, and items whose secrets are fetched one at a time.
public struct ExportContents {
  /// By suite, in the order in which they are written.
  public var suites: [(ExactString, [SettingEntry])] = []
  /// The items, in the order in which they are written.
  public var items: [ExportItem] = []
  /// The collections of the Secret Service, which `json` alone has room for.
  public var collections = ServiceCollections()

  /// No content.
  public init() {}

  var isOneSuite: Bool { suites.count == 1 && items.isEmpty }
}

/// An item to be exported.
public struct ExportItem {
  /// The class, which is the folder of `keychain`.
  public let itemClass: ItemClass
  /// Where it stands in the tree: `keychain/generic/SERVICE/ACCOUNT`.
  public let path: String
  /// Those that a copy needs, the identity's too, by full names.
  let attributes: [ItemEntry.Attribute]
  let modified: Timestamp?
  /// nil: it can't be read, and the item is left out.
  let secret: () throws(FormatError) -> SecretBytes?
  /// Its `otpauth:` URI, asked for after the secret; nil: it has none.
  public let otpauth: (() throws(FormatError) -> SecretBytes?)?

  /// `secret` gives the item's secret when it is written; nil leaves the item out.
  public init(
    _ itemClass: ItemClass, path: String, attributes: [ItemEntry.Attribute], modified: Timestamp?,
    secret: @escaping () throws(FormatError) -> SecretBytes?,
    otpauth: (() throws(FormatError) -> SecretBytes?)? = nil
  ) {
    self.itemClass = itemClass
    self.path = path
    self.attributes = attributes
    self.modified = modified
    self.secret = secret
    self.otpauth = otpauth
  }
}

/// The formats that an export can have.
public enum ExportFormat: String, CaseIterable, Sendable {
  case json
  case plist
  case env
  case tar
}

/// Writes an export.
public struct ExportWriter {
  private let format: ExportFormat
  private let codec: SettingCodec
  private let propertyLists: any PropertyListCoding
  private let paths: any TreePathCoding
  /// Whether the variables of `env` begin with the service of their item.
  public var prefixesService = false

  /// - Parameters:
  ///   - format: what is written.
  ///   - propertyLists: writes XML property lists.
  ///   - paths: escapes names as the tree does.
  public init(
    _ format: ExportFormat, propertyLists: any PropertyListCoding, paths: any TreePathCoding
  ) {
    self.format = format
    self.propertyLists = propertyLists
    self.paths = paths
    codec = SettingCodec(propertyLists: propertyLists)
  }

  /// - Throws: `FormatError`, also for what the format can't say.
  public func write(_ contents: ExportContents, to sink: ByteSink) throws(FormatError) {
    switch format {
    case .json: try JSONFormat(codec: codec).write(contents, to: sink)
    case .plist: try PropertyListFormat(propertyLists: propertyLists).write(contents, to: sink)
    case .env:
      try EnvironmentFormat(codec: codec, prefixesService: prefixesService).write(contents, to: sink)
    case .tar: try TarFormat(codec: codec, paths: paths).write(contents, to: sink)
    }
    try sink.flush()
  }
}
