import Glibc
import Platform
import SecretMemory
import Synchronization
import Testing

@testable import ViewFormats

/// The programs themselves read what is rendered: 10,000 random values for each dialect of `.env`, 2,000 for each other format
/// (`LOADER_VALUES` sets another number, `LOADER_SEED` another choice). What a dialect can't carry is refused, and what is
/// rendered has to be read as it was, value by value.
///
/// mount-helpers/test installs the programs; the test of one that is missing is left out.
@Suite(.timeLimit(.minutes(5))) struct LoaderTests {
  @Test func dashReadsSh() throws { try check("dash", .init(format: .env, dialect: .sh)) }
  @Test func bashReadsSh() throws { try check("bash", .init(format: .env, dialect: .sh)) }
  @Test func dashReadsPortable() throws { try check("dash", .init(format: .env)) }

  @Test(
    .enabled(if: Loaders.hasPython, "python-dotenv is not installed"),
    arguments: [EnvDialect.python, .portable])
  func pythonDotenvReads(dialect: EnvDialect) throws {
    try check("python-dotenv", .init(format: .env, dialect: dialect))
  }

  @Test(.enabled(if: Loaders.docker != nil, "docker is not installed")) func dockerReads() throws {
    try check("docker", .init(format: .env, dialect: .docker))
  }

  @Test(
    .enabled(if: Loaders.hasCompose, "compose is not installed"), arguments: [EnvDialect.compose, .portable])
  func composeReads(dialect: EnvDialect) throws {
    try check("compose", .init(format: .env, dialect: dialect))
  }

  @Test(
    .enabled(if: Loaders.hasSystemd, "systemd is not installed"), arguments: [EnvDialect.systemd, .portable])
  func systemdReads(dialect: EnvDialect) throws {
    // The program that shows what it reads fills in variables afterwards, and wants no empty ones, unlike a unit.
    try check("systemd", .init(format: .env, dialect: dialect)) {
      !$0.isEmpty && !$0.contains(UInt8(ascii: "$"))
    }
  }

  @Test(.enabled(if: Loaders.hasPython, "botocore is not installed")) func botocoreReads() throws {
    try check("botocore", .init(format: .ini))
  }

  /// The program itself, with 200 values.
  @Test(.enabled(if: Loaders.hasAWS, "the aws CLI is not installed")) func theAWSCommandReads() throws {
    try check("aws", .init(format: .ini), count: 200)
  }

  @Test func curlReadsNetrc() throws { try check("curl", .init(format: .netrc)) }
  @Test func pythonReadsNetrc() throws { try check("netrc", .init(format: .netrc)) }

  @Test(.enabled(if: Loaders.npm != nil, "npm is not installed")) func npmReads() throws {
    try check("npm", .init(format: .npmrc))
  }

  @Test func libpqReadsPgpass() throws { try check("libpq", .init(format: .pgpass)) }
  @Test func pythonReadsJSON() throws { try check("json", .init(format: .json)) }
  @Test func dockersConfigurationIsBase64() throws {
    try check("docker-config", .init(format: .dockerConfig))
  }

  /// Recordings: dotenv of npm, which no package of Debian or PyPI has, and compose-go read this from a file when the recording was made.
  @Test(arguments: [EnvDialect.node, .compose]) func aRecordingReads(dialect: EnvDialect) throws {
    let grammar = Grammar(format: .env, dialect: dialect)
    let document = try grammar.parse(Loaders.file("recorded/\(dialect).env"))
    let recorded = Loaders.values(Loaders.file("recorded/\(dialect).values"))
    #expect(recorded.count > 500)
    #expect(document.entries.count == recorded.count)
    for (entry, value) in zip(document.entries, document.values.values) {
      #expect(recorded[entry.name[0]] == value, "\(entry.name)")
    }
    // This version writes the same values as the one with which the recording was made.
    let names = document.entries.filter { $0.name[0].hasPrefix("K") }
    let template = try ViewTemplate(.env, dialect, entries: names.map { ($0.name, $0.name[0]) })
    let file = try template.render { (slot, body) throws(ViewError) in
      let value = recorded[slot.reference] ?? []
      try body(value.span)
    }
    #expect(Loaders.file("recorded/\(dialect).env").starts(with: file.unprotected))
  }

  private func check(
    _ loader: String, _ grammar: Grammar, count: Int? = nil, _ isTried: ([UInt8]) -> Bool = { _ in true }
  ) throws {
    var secrets = RandomSecrets(seed: Loaders.number("LOADER_SEED").map(UInt64.init) ?? 6)
    let count = count ?? Loaders.number("LOADER_VALUES") ?? (grammar.format == .env ? 10_000 : 2_000)
    let values = Values(values: (0..<count).map { _ in secrets.next() }.filter(isTried))
    let (file, numbers) = try grammar.file(values)
    let read = try Loaders.read(file, loader)
    #expect(numbers.count > count / 6, "hardly a value is carried")
    var wrong: [String] = []
    for number in numbers {
      let name = grammar.format.name(number).joined(separator: " ")
      if read[name] != values.values[number] {
        wrong.append("\(name): \(values.values[number]) was read as \(read[name] ?? [])")
      }
    }
    #expect(wrong.isEmpty, "\(wrong.count) of \(numbers.count): \(wrong.prefix(3))")
    #expect(read.count == numbers.count)
  }
}

/// The programs, and `Loaders/loaders.py`, which has them read a file.
enum Loaders {
  private static let tests = "/" + #filePath.split(separator: "/").dropLast().joined(separator: "/")
  private static let build =
    "/" + tests.split(separator: "/").dropLast(2).joined(separator: "/") + "/.build/loaders"

  /// How many files were made.
  private static let files = Atomic(0)

  private static let python = "\(build)/python/bin/python3"
  static let hasPython = isThere(python)
  private static let compose = "\(build)/compose/docker-compose"
  static let hasCompose = isThere(compose)
  static let hasAWS = isThere("\(build)/python/bin/aws")
  static let docker = ["/usr/bin/docker", "\(build)/../docker/usr/bin/docker"].first(where: isThere)
  static let hasSystemd = isThere(
    "/usr/lib/systemd/user-environment-generators/30-systemd-environment-d-generator")
  static let npm = ["/usr/share/nodejs/npm", "/usr/lib/node_modules/npm"].first(where: isThere)

  private static func isThere(_ path: String) -> Bool { unsafe access(path, R_OK) == 0 }

  static func number(_ variable: String) -> Int? { environment(variable).flatMap { Int($0) } }

  /// The values that a program reads from a file, by their names.
  static func read(_ file: [UInt8], _ loader: String) throws -> [String: [UInt8]] {
    let number = files.add(1, ordering: .relaxed).newValue
    let path = "\(environment("TMPDIR") ?? "/tmp")/view-\(getpid())-\(number)"
    defer { for name in [path, path + ".values"] { unsafe unlink(name) } }
    try write(file, to: path)
    try write([], to: path + ".values")
    let output = unsafe open(path + ".values", O_WRONLY | O_CLOEXEC)
    defer { close(output) }
    let program =
      hasPython ? python : "/usr/bin/python3"
    let process = try spawn(
      program, [program, "-B", "\(tests)/Loaders/loaders.py", loader, path],
      environment: inheritedEnvironment + [
        "LOADERS_DOCKER=\(docker ?? "")", "LOADERS_COMPOSE=\(compose)", "LOADERS_NPM=\(npm ?? "")",
      ],
      streams: [.nothing(as: 0), .descriptor(output, as: 1)])
    try #require(waitForChild(process) == 0, "\(loader) did not read it")
    return values(bytes(path + ".values"))
  }

  /// `NAME VALUE`, both hexadecimal, a line each.
  static func values(_ text: [UInt8]) -> [String: [UInt8]] {
    var values: [String: [UInt8]] = [:]
    for line in text.split(separator: 0x0A) {
      let words = line.split(separator: 0x20, omittingEmptySubsequences: false)
      values[String(decoding: plain(words[0]), as: UTF8.self)] = plain(words[1])
    }
    return values
  }

  private static func plain(_ digits: ArraySlice<UInt8>) -> [UInt8] {
    let digits = digits.compactMap(Hexadecimal.value)
    return stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }

  static func file(_ name: String) -> [UInt8] { bytes("\(tests)/Loaders/\(name)") }

  private static func write(_ bytes: [UInt8], to path: String) throws {
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    try #require(descriptor >= 0)
    defer { close(descriptor) }
    let count = unsafe bytes.withUnsafeBytes { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
    try #require(count == bytes.count)
  }

  private static func bytes(_ path: String) -> [UInt8] {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return [] }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = unsafe chunk.withUnsafeMutableBytes {
        unsafe Glibc.read(descriptor, $0.baseAddress, $0.count)
      }
      guard count > 0 else { return bytes }
      bytes += chunk[..<count]
    }
  }
}
