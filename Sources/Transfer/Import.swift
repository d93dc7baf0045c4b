import Glibc
public import Model
public import SecretMemory

public enum ImportFormat: String, CaseIterable, Sendable {
  case json
  case plist
  case env
  case tar
  case keepass
  case csv
  case pass
}

extension Source {
  /// The bytes of a file, or of standard input.
  public static func open(_ path: String?) throws(TransferError) -> Source {
    guard let path else { return Source(try SourceReading.readAll(STDIN_FILENO)) }
    // SAFETY: a variadic call without its variable part.
    let descriptor = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw TransferError("it can't be opened: \(TransferError.system(errno))")
    }
    defer { close(descriptor) }
    if let mapped = Source(mapping: descriptor) { return mapped }
    return Source(try SourceReading.readAll(descriptor))
  }

  public var isSealed: Bool { Seal.isSealed(self) }

  /// - Throws: `TransferError` for a wrong passphrase, or damage.
  public func opened(with passphrase: borrowing SecretBytes) throws(TransferError) -> Source {
    try Seal.open(self, passphrase)
  }
}

/// Reads what is to be imported.
public struct Importing {
  private let codec: SettingCodec
  private let propertyLists: any PropertyListCoding
  /// Where the keys of a list and the variables of a file go.
  private let suite: ExactString?
  private let service: ExactString?

  public init(
    codec: SettingCodec, propertyLists: any PropertyListCoding, suite: ExactString?, service: ExactString?
  ) {
    self.codec = codec
    self.propertyLists = propertyLists
    self.suite = suite
    self.service = service
  }

  public static func isPasswordStore(_ path: String) -> Bool { PasswordStore.isStore(path) }

  public static func passwordStore(_ path: String) throws(TransferError) -> Contents {
    guard PasswordStore.isStore(path) else {
      throw TransferError("there is no `.gpg-id`, so it is no store of pass")
    }
    return try PasswordStore(folder: path).read()
  }

  /// What the bytes seem to be.
  public static func format(of source: Source) -> ImportFormat? {
    if source.count > 262, source.starts("ustar", at: 257) { return .tar }
    guard let first = source.whole.first(where: { source[$0] > 0x20 }) else { return nil }
    if source[first] == UInt8(ascii: "{") { return .json }
    if source.starts("bplist") { return .plist }
    if source[first] == UInt8(ascii: "<") || source.starts("\u{FEFF}<") {
      return KeePassFormat.isKeePass(source) ? .keepass : .plist
    }
    if CSVFormat.isKnown(source) { return .csv }
    guard let variables = try? EnvironmentText.variables(in: source) else { return nil }
    return variables.isEmpty ? nil : .env
  }

  public func read(_ source: Source, as format: ImportFormat) throws(TransferError) -> Contents {
    switch format {
    case .json: return try JSONFormat(codec: codec).read(source)
    case .plist: return try PropertyListFormat(propertyLists: propertyLists).read(source, suite: suite)
    case .tar: return try TapeFormat(codec: codec).read(source)
    case .keepass: return try KeePassFormat().read(source)
    case .csv: return try CSVFormat().read(source)
    case .pass: throw TransferError("a store of pass is a folder; name it")
    case .env: return try EnvironmentFormat(codec: codec).read(source, to: try target())
    }
  }

  private func target() throws(TransferError) -> EnvironmentFormat.Target {
    if let suite { return .suite(suite) }
    if let service { return .service(service) }
    throw TransferError("say where its variables go: --to defaults/SUITE, or --to keychain/generic/SERVICE")
  }
}
