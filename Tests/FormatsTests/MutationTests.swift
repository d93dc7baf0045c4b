import Formats
import Glibc
import ImportExport
import Model
import SecretMemory
import Store
import Testing
import Vault

@testable import Suites

/// What parses bytes of others.
enum Parser: String, CaseIterable, Sendable {
  case json, bitwarden, plist, env, tar, keepass, csv, pass, sealed
  case suiteXML = "suite-xml"
  case suiteBinary = "suite-binary"
  case text
  /// Any of them, chosen by the content.
  case detected

  /// The files that its mutations begin with.
  var corpus: [(name: String, bytes: [UInt8])] {
    guard self == .detected else { return Corpus.files(of: rawValue) }
    return Parser.allCases.filter { $0 != .detected }.flatMap { Corpus.files(of: $0.rawValue) }
  }

  /// Parses, and reads everything that was found. Refusing is right; what it must not do is to trap, to recurse without
  /// limit, or to take time or memory out of proportion.
  func run(_ bytes: [UInt8]) {
    switch self {
    case .suiteXML, .suiteBinary: _ = try? PropertyLists.read(bytes)
    case .text: runTexts(bytes)
    case .sealed: runSealed(bytes)
    case .pass:
      guard let content = try? source(bytes) else { return }
      let item = try? PassEntry.item(content, path: ["a", "b"], service: nil)
      if let item { Self.read([item]) }
    case .detected:
      guard let source = try? source(bytes), let format = try? ImportReader.format(of: source) else { return }
      Self.read(source, format)
    default:
      guard let source = try? source(bytes), let format = ImportFormat(rawValue: rawValue) else { return }
      Self.read(source, format)
    }
  }

  private static func read(_ source: ByteSource, _ format: ImportFormat) {
    let reader = reader(suite: format.takesTarget ? "s" : nil)
    guard let contents = try? reader.read(source, as: format) else { return }
    read(contents.items)
    for setting in contents.settings { _ = TreePaths.path(setting) }
  }

  private static func read(_ items: [ItemEntry]) {
    for item in items {
      _ = TreePaths.path(item.identity)
      _ = try? item.secret.bytes()
      for companion in item.companions { _ = try? companion.secret.bytes() }
    }
  }

  private func runTexts(_ bytes: [UInt8]) {
    let codec = SettingCodec(propertyLists: PropertyLists())
    for type in SettingType.allCases {
      guard let value = try? codec.value(of: bytes, as: type) else { continue }
      _ = try? codec.content(of: value)
    }
    _ = codec.inferred(from: bytes)
    let text = String(decoding: bytes, as: UTF8.self)
    _ = Timestamp(iso8601: text)?.iso8601
    _ = ProgramRules(ExactString(text))
    _ = AccessFlags(text: text)
    _ = try? TreePaths().decode(text)
    for itemClass in ItemClass.allCases { _ = TreePaths().identity(itemClass, ["a", text]) }
  }

  /// Headers without scrypt, which takes a second, and pieces under a key.
  private func runSealed(_ bytes: [UInt8]) {
    guard let header = try? SealedFileHeader(reading: Array(bytes.prefix(SealedFileHeader.longest))),
      case .privateKey = header.lock, let key = try? SealedFile.makePrivateKey()
    else { return }
    _ = try? SealedFileOpener(header, privateKey: key)
  }
}

/// Mutations of a kept corpus, the same in every run. `FUZZ_SECONDS` runs each parser for so long with another seed each
/// time, and `FUZZ_FOLDER` keeps the bytes that are being parsed, so that what ends the process can be read: `Scripts/fuzz`.
@Suite(.serialized) struct MutationTests {
  private static let count = 600

  /// All of them, or the one that `FUZZ_PARSER` names.
  private static var parsers: [Parser] {
    variable("FUZZ_PARSER").flatMap(Parser.init).map { [$0] } ?? Parser.allCases
  }

  @Test(arguments: parsers) func noBytesEndTheProcess(parser: Parser) throws {
    let corpus = parser.corpus
    try #require(!corpus.isEmpty || parser == .detected)
    for file in corpus { parser.run(file.bytes) }
    var mutator = Mutator(seed: Self.seed)
    let clock = ContinuousClock()
    let end = clock.now + .seconds(Self.seconds ?? 0)
    var slowest = Duration.zero
    var number = 0
    while Self.seconds == nil ? number < Self.count : clock.now < end {
      let file = corpus[mutator.below(corpus.count)]
      var bytes = mutator.mutated(file.bytes, with: corpus[mutator.below(corpus.count)].bytes)
      if parser == .tar, mutator.below(3) > 0 { TarChecksums.mend(&bytes) }
      Self.keep(bytes, parser)
      slowest = max(slowest, clock.measure { parser.run(bytes) })
      number += 1
    }
    #expect(slowest < .seconds(10), "\(parser): a parser takes time out of proportion")
    if Self.seconds != nil { print("fuzz: \(parser.rawValue): \(number) cases, the slowest \(slowest)") }
  }

  private static func variable(_ name: String) -> String? {
    unsafe getenv(name).map { unsafe String(cString: $0) }
  }

  private static let seconds = variable("FUZZ_SECONDS").flatMap(Int.init)

  private static var seed: UInt64 {
    variable("FUZZ_SEED").flatMap(UInt64.init) ?? (seconds == nil ? 13 : UInt64.random(in: 0...UInt64.max))
  }

  private static func keep(_ bytes: [UInt8], _ parser: Parser) {
    guard let folder = variable("FUZZ_FOLDER") else { return }
    // SAFETY: a variadic call with its one argument.
    let descriptor = unsafe open(
      "\(folder)/\(parser.rawValue)", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return }
    _ = unsafe bytes.withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
    close(descriptor)
  }

  /// A vault of which a file was damaged opens or is refused; no secret that it gives is another than was stored.
  @Test func noDamagedVaultEndsTheProcess() throws {
    let folder = SuiteFolder.make()
    defer { SuiteFolder.remove(folder) }
    let secret = Array("a secret of a known value".utf8)
    try makeVault(folder + "/v", secret)
    let files = ["vault.db", "vault.key"]
    let whole = files.map { Corpus.file("\(folder)/v/\($0)") }
    try #require(whole.allSatisfy { !$0.isEmpty })
    var mutator = Mutator(seed: Self.seed)
    for number in 0..<(Self.seconds == nil ? 60 : 60 * max(1, (Self.seconds ?? 0) / 10)) {
      let copy = "\(folder)/c\(number)"
      mkdir(copy, 0o700)
      for (name, bytes) in zip(files, whole) {
        let isChanged = (name == "vault.db") == (mutator.below(4) > 0)
        var damaged = bytes
        // Its size stays, so that more than the size is looked at.
        if isChanged, mutator.below(2) == 0 {
          for _ in 0...mutator.below(8) { damaged[mutator.below(damaged.count)] = UInt8(mutator.below(256)) }
        } else if isChanged {
          damaged = mutator.mutated(bytes, with: bytes)
        }
        Corpus.write(damaged, to: "\(copy)/\(name)")
      }
      read(copy, expecting: secret)
      SuiteFolder.remove(copy)
    }
  }

  private func mkdir(_ path: String, _ mode: mode_t) { _ = unsafe Glibc.mkdir(path, mode) }

  private func makeVault(_ folder: String, _ secret: [UInt8]) throws {
    mkdir(folder, 0o700)
    let vault = try VaultEngine(directory: folder, stateDirectory: folder + "/state")
    let moment = Timestamp(seconds: 1_700_000_000)
    for account in ["a", "b", "c"] {
      var bytes = try SecretBytes()
      try unsafe secret.withUnsafeBytes { try unsafe bytes.append($0) }
      _ = try vault.add(
        Item(
          id: ItemID(rawValue: ""), identity: .generic(service: "s", account: ExactString(account)),
          created: moment,
          modified: moment), secret: bytes)
    }
  }

  private func read(_ folder: String, expecting secret: [UInt8]) {
    guard let vault = try? VaultEngine(directory: folder, stateDirectory: folder + "/state"),
      let items = try? vault.items()
    else { return }
    for item in items {
      guard let bytes = try? vault.secret(of: item.id) else { continue }
      #expect(unsafe bytes.withUnsafeBytes { unsafe Array($0) } == secret)
    }
    _ = vault.problems()
  }
}

/// Tar headers with sums that hold, so that a damaged header is read.
enum TarChecksums {
  static func mend(_ bytes: inout [UInt8]) {
    for block in stride(from: 0, to: bytes.count - 511, by: 512)
    where bytes[(block + 257)...].starts(with: "ustar".utf8) {
      let sum = (0..<512).reduce(0) { $0 + Int((148..<156).contains($1) ? 0x20 : bytes[block + $1]) }
      let digits = String(sum, radix: 8)
      let text = String(repeating: "0", count: max(0, 6 - digits.count)) + digits + "\0 "
      bytes.replaceSubrange((block + 148)..<(block + 156), with: Array(text.utf8.prefix(8)))
    }
  }
}
