public import Model

/// The formats that an import can have.
public enum ImportFormat: String, CaseIterable, Sendable {
  case json
  case plist
  case env
  case tar
  case keepass
  case csv
  case bitwarden
  case pass

  /// Whether `--to` says where its entries go; all others say it themselves.
  public var takesTarget: Bool { self == .plist || self == .env || self == .pass }
}

/// Reads what is to be imported.
public struct ImportReader {
  /// Larger files are refused: nothing that a password manager writes comes near.
  public static let largestFile = 1 << 40

  private let codec: SettingCodec
  private let propertyLists: any PropertyListCoding
  private let paths: any TreePathCoding
  /// Where the keys of a list and the variables of a file go.
  private let suite: ExactString?
  private let service: ExactString?

  /// - Parameters:
  ///   - propertyLists: reads property lists.
  ///   - paths: reads names that the tree has escaped.
  ///   - suite: the suite of settings whose format names none; nil: such settings are an error.
  ///   - service: the service of items whose format names none; nil: the format's own choice.
  public init(
    propertyLists: any PropertyListCoding, paths: any TreePathCoding, suite: ExactString? = nil,
    service: ExactString? = nil
  ) {
    codec = SettingCodec(propertyLists: propertyLists)
    self.propertyLists = propertyLists
    self.paths = paths
    self.suite = suite
    self.service = service
  }

  /// The format that the bytes seem to have; nil: none that is known.
  ///
  /// - Throws: `FormatError` for what is known and can't be read, with what to do.
  public static func format(of source: ByteSource) throws(FormatError) -> ImportFormat? {
    try checkReadable(source)
    if source.count > 262, source.starts("ustar", at: 257) { return .tar }
    guard let first = source.whole.first(where: { source[$0] > 0x20 }) else { return nil }
    if source[first] == UInt8(ascii: "{") || source.starts("\u{FEFF}{") {
      return BitwardenFormat.isBitwarden(source) ? .bitwarden : .json
    }
    if source.starts("bplist") { return .plist }
    if source[first] == UInt8(ascii: "<") || source.starts("\u{FEFF}<") {
      return KeePassFormat.isKeePass(source) ? .keepass : .plist
    }
    if CSVFormat.isKnown(source) { return .csv }
    guard let variables = try? EnvironmentText.variables(in: source) else { return nil }
    return variables.isEmpty ? nil : .env
  }

  private static func checkReadable(_ source: ByteSource) throws(FormatError) {
    if source.starts([0x03, 0xD9, 0xA2, 0x9A]) {
      throw FormatError(
        "it is a database of KeePass; `keepassxc-cli export -f xml FILE.kdbx > FILE.xml` writes what can be read"
      )
    }
    if source.starts([0x50, 0x4B, 0x03, 0x04]) {
      throw FormatError(
        "it is a zip file; of 1Password export CSV in place of 1PUX, of others unpack it first")
    }
  }

  /// - Throws: `FormatError` where the bytes are damaged, cut off or not of that format.
  public func read(_ source: ByteSource, as format: ImportFormat) throws(FormatError) -> Contents {
    guard format.takesTarget || (suite == nil && service == nil) else {
      throw FormatError("what is in it says where it goes; leave out --to")
    }
    switch format {
    case .json: return try JSONFormat(codec: codec).read(source)
    case .plist: return try propertyList(source)
    case .tar: return try TarFormat(codec: codec, paths: paths).read(source)
    case .keepass: return try KeePassFormat().read(source)
    case .csv: return try CSVFormat().read(source)
    case .bitwarden: return try BitwardenFormat().read(source)
    case .pass: throw FormatError("a store of pass is a folder; name it")
    case .env: return try EnvironmentFormat(codec: codec).read(source, to: try target())
    }
  }

  private func propertyList(_ source: ByteSource) throws(FormatError) -> Contents {
    guard service == nil else {
      throw FormatError("the keys of a property list are settings: --to defaults/SUITE")
    }
    return try PropertyListFormat(propertyLists: propertyLists).read(source, suite: suite)
  }

  private func target() throws(FormatError) -> EnvironmentFormat.Target {
    if let suite { return .suite(suite) }
    if let service { return .service(service) }
    throw FormatError("say where its variables go: --to defaults/SUITE, or --to keychain/generic/SERVICE")
  }
}
