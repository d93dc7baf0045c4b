import Formats
import Model
import SecretMemory
import Store
import Tree
import ViewFormats

@testable import ImportExport
@testable import Suites

/// Code that parses bytes of others.
enum Parser: String, CaseIterable, Sendable {
  // Files to import, and sealed files.
  case json, bitwarden, plist, env, tar, keepass, csv, pass, sealed
  /// Any of them, chosen by the content.
  case detected
  // Files of suites.
  case suiteXML = "suite-xml"
  case suiteBinary = "suite-binary"
  /// Settings, dates, rules and names as texts.
  case text
  /// The journal of an import.
  case journal
  /// Names and values of extended attributes.
  case attributes
  // The content of a vault's blobs.
  case record, manifest
  /// The records of a backup.
  case backup
  /// Messages of the control socket.
  case control
  /// Messages of the system bus.
  case bus
  /// proc(5).
  case process
  // Files that views show; `env` in each dialect.
  case viewEnv = "view-env"
  case viewJSON = "view-json"
  case viewIni = "view-ini"
  case viewNetrc = "view-netrc"
  case viewNpmrc = "view-npmrc"
  case viewPgpass = "view-pgpass"
  case viewDocker = "view-docker-config"
  case viewTemplate = "view-template"
  /// The stored form of a view.
  case storedView = "stored-view"

  /// The bytes that its mutations begin with.
  var corpus: [[UInt8]] {
    let files = self == .detected ? Self.allCases.filter(\.isImportFormat) : [self]
    return files.flatMap { Corpus.files(of: $0.rawValue).map(\.bytes) } + samples
  }

  /// Input that no file of the corpus has, because this version's own code makes it.
  private var samples: [[UInt8]] {
    switch self {
    case .record: VaultSamples.records
    case .manifest: VaultSamples.manifests
    case .backup: BackupTarget.samples
    case .control: ControlSamples.messages
    case .storedView: ViewTarget.stored
    default: viewFormat.map(ViewTarget.samples) ?? []
    }
  }

  private var viewFormat: ViewFormat? {
    guard rawValue.hasPrefix(ViewTarget.prefix) else { return nil }
    return ViewFormat(rawValue: String(rawValue.dropFirst(ViewTarget.prefix.count)))
  }

  private var isImportFormat: Bool {
    self == .sealed || ImportFormat(rawValue: rawValue) != nil
  }

  /// Parses, and reads everything that was found. To refuse is right; it must not trap, recurse without limit, or take
  /// time or memory out of proportion.
  ///
  /// - Returns: the outcome, in a word: another word means that other code has run.
  func run(_ bytes: [UInt8]) -> String {
    let outcome =
      switch self {
      case .suiteXML, .suiteBinary: Self.outcome { "\(try PropertyLists.read(bytes).type)" }
      case .text: runTexts(bytes)
      case .sealed: runSealed(bytes)
      case .pass:
        Self.outcome { Self.read([try PassEntry.item(source(bytes), path: ["a", "b"], service: nil)]) }
      case .detected: runDetected(bytes)
      case .journal: runJournal(bytes)
      case .attributes: AttributeTarget.run(bytes)
      case .record: VaultTarget.runRecord(bytes)
      case .manifest: VaultTarget.runManifest(bytes)
      case .backup: BackupTarget.run(bytes)
      case .control: ControlTarget.run(bytes)
      case .bus: BusTarget.run(bytes)
      case .process: ProcessTarget.run(bytes)
      case .storedView: ViewTarget.runStored(bytes)
      case .viewEnv, .viewJSON, .viewIni, .viewNetrc, .viewNpmrc, .viewPgpass, .viewDocker, .viewTemplate:
        viewFormat.map { ViewTarget.run(bytes, $0) } ?? ""
      default:
        Self.outcome { try ImportFormat(rawValue: rawValue).map { try Self.read(source(bytes), $0) } ?? "" }
      }
    return String(outcome.filter { !$0.isNumber }.prefix(100))
  }

  static func outcome(_ body: () throws -> String) -> String {
    do { return try body() } catch { return "\(error)" }
  }

  private static func read(_ source: ByteSource, _ format: ImportFormat) throws -> String {
    let reader = reader(suite: format.takesTarget ? "s" : nil)
    let contents = try reader.read(source, as: format)
    for setting in contents.settings { _ = TreePaths.path(setting) }
    return read(contents.items) + (contents.settings.isEmpty ? "" : "settings")
      + (contents.remarks.isEmpty ? "" : "remarks")
  }

  private static func read(_ items: [ItemEntry]) -> String {
    for item in items {
      _ = TreePaths.path(item.identity)
      _ = try? item.secret.bytes()
      for companion in item.companions { _ = try? companion.secret.bytes() }
    }
    return items.isEmpty ? "" : "items"
  }

  private func runDetected(_ bytes: [UInt8]) -> String {
    Self.outcome {
      let source = try source(bytes)
      guard let format = try ImportReader.format(of: source) else { return "unknown" }
      return try "\(format) \(Self.read(source, format))"
    }
  }

  private func runTexts(_ bytes: [UInt8]) -> String {
    let codec = SettingCodec(propertyLists: PropertyLists())
    var outcome = ""
    for type in SettingType.allCases {
      guard let value = try? codec.value(of: bytes, as: type) else { continue }
      outcome += "\(type) "
      _ = try? codec.content(of: value)
    }
    outcome += "\(codec.inferred(from: bytes).type) "
    let text = String(decoding: bytes, as: UTF8.self)
    if Timestamp(iso8601: text)?.iso8601 != nil { outcome += "time " }
    if ProgramRules(ExactString(text)) != nil { outcome += "rules " }
    if (try? KeyURI.check(bytes.span)) != nil { outcome += "otpauth " }
    if AccessFlags(text: text) != nil { outcome += "flags " }
    if (try? TreePaths().decode(text)) != nil { outcome += "name " }
    for itemClass in ItemClass.allCases where TreePaths().identity(itemClass, ["a", text]) != nil {
      outcome += "\(itemClass) "
    }
    return outcome
  }

  /// Headers without scrypt, which takes a second, and pieces under a key.
  private func runSealed(_ bytes: [UInt8]) -> String {
    Self.outcome {
      let header = try SealedFileHeader(reading: Array(bytes.prefix(SealedFileHeader.longest)))
      guard case .privateKey = header.lock else { return "passphrase" }
      _ = try SealedFileOpener(header, privateKey: SealedFile.makePrivateKey())
      return "opened"
    }
  }

  private func runJournal(_ bytes: [UInt8]) -> String {
    guard let value = PropertyLists().value(xml: bytes) else { return "none" }
    guard let journal = ImportJournal(value) else { return "other" }
    return Self.outcome { try PropertyLists().xml(journal.value).isEmpty ? "empty" : "journal" }
  }
}
