public import Model
public import SecretMemory

/// What is to be exported: settings as they are, and items whose secrets are fetched one at a time.
public struct ExportContents {
  /// By suite, in the order in which they are written.
  public var suites: [(ExactString, [SettingEntry])] = []
  public var items: [ExportItem] = []

  public init() {}

  var isOneSuite: Bool { suites.count == 1 && items.isEmpty }
}

public struct ExportItem {
  let itemClass: ItemClass
  /// Where it stands in the tree: `keychain/generic/SERVICE/ACCOUNT`.
  let path: String
  /// Those that a copy needs, the identity's too, by full names.
  let attributes: [ItemEntry.Attribute]
  let modified: Timestamp?
  let secret: () throws(TransferError) -> SecretBytes

  public init(
    _ itemClass: ItemClass, path: String, attributes: [ItemEntry.Attribute], modified: Timestamp?,
    secret: @escaping () throws(TransferError) -> SecretBytes
  ) {
    self.itemClass = itemClass
    self.path = path
    self.attributes = attributes
    self.modified = modified
    self.secret = secret
  }
}

public enum ExportFormat: String, CaseIterable, Sendable {
  case json
  case plist
  case env
  case tar

  /// - Throws: `TransferError`, also for what the format can't say.
  public func write(
    _ contents: ExportContents, codec: SettingCodec, propertyLists: any PropertyListCoding, to sink: Sink
  ) throws(TransferError) {
    switch self {
    case .json: try JSONFormat(codec: codec).write(contents, to: sink)
    case .plist: try PropertyListFormat(propertyLists: propertyLists).write(contents, to: sink)
    case .env: try EnvironmentFormat(codec: codec).write(contents, to: sink)
    case .tar: try TapeFormat(codec: codec).write(contents, to: sink)
    }
    try sink.finish()
  }
}
