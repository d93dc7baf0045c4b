import Glibc
import Model
import Store
import StoreConformance
import Testing

@testable import Vault
@testable import VaultRecords

/// The released formats, which every later version opens. The keys in `Fixtures` are for these tests only.
@Suite struct VaultFormatTests {
  private static let fixtures =
    String(#filePath.dropLast("VaultFormatTests.swift".count)) + "Fixtures/"

  @Test func versionOneIsRead() throws {
    let fixture = try Self.copied("v1")
    let engine = try fixture.open()
    #expect(try Self.listing(engine) == Self.expected("v1"))
    #expect(engine.problems().map(\.remedy).allSatisfy { $0.contains("keyhole upgrade") })
    let before = fixture.snapshot()
    for item in try engine.items() {
      #expect(failure { try engine.set(item.id, [1]) }?.kind == "readOnly")
      #expect(failure { try engine.remove([item.id]) }?.kind == "readOnly")
    }
    #expect(engine.readOnlyReason?.contains("keyhole upgrade") == true)
    #expect(fixture.snapshot() == before)
  }

  @Test func versionTwoIsRead() throws {
    let fixture = try Self.copied("v2")
    let engine = try fixture.open()
    #expect(try Self.listing(engine) == Self.expected("v2"))
    #expect(engine.problems().isEmpty)
    for item in try engine.items() { try engine.set(item.id, [1]) }
  }

  @Test(arguments: ["v1", "v2"]) func aReaderWrittenFromTheDocumentReadsIt(_ version: String) throws {
    let fixture = try Self.copied(version)
    let reader = try IndependentReader(
      database: fixture.database, key: contents(of: fixture.key),
      deviceKey: contents(of: fixture.state + "/device.key"))
    let engine = try fixture.open()
    let secrets = try engine.items().map { try engine.bytes(of: $0.id) }
    let entries = try reader.entries()
    #expect(Set(entries.map(\.secret)) == Set(secrets))
    #expect(entries.count == secrets.count)
    let names = entries.compactMap { $0.fields[17] ?? $0.fields[19] }.map {
      String(decoding: $0[0], as: UTF8.self)
    }
    #expect(Set(names) == ["mail", "ssh", "exämple.org"])
  }

  /// `KEYHOLE_MAKE_FIXTURE=v2 swift test --filter VaultFormat` makes the fixture of a new format.
  @Test(.enabled(if: unsafe getenv("KEYHOLE_MAKE_FIXTURE") != nil)) func makeFixture() throws {
    let version = try #require(unsafe getenv("KEYHOLE_MAKE_FIXTURE").map { unsafe String(cString: $0) })
    let fixture = try VaultFixture()
    var listed = ""
    do {
      let engine = try fixture.open()
      try engine.add(KeychainSamples.generic("mail"), "not a secret")
      let rewritten = try engine.add(KeychainSamples.generic("ssh", ""), "old")
      try engine.set(rewritten.id, (0..<1000).map { UInt8(truncatingIfNeeded: $0) })
      _ = try engine.update([rewritten.id]) { item throws(StoreError) in item.label = "label" }
      try engine.add(KeychainSamples.full(), "line\n")
      let gone = try engine.add(KeychainSamples.generic("gone"), "gone")
      try engine.remove([gone.id])
      listed = try Self.listing(engine)
    }
    unsafe mkdir(Self.fixtures + version, 0o755)
    for path in [fixture.database, fixture.key] { try keep(path, version) }
    for name in names(in: fixture.state) { try keep(fixture.state + "/" + name, version) }
    try write(Array(listed.utf8), to: Self.fixtures + version + "/expected.txt")
  }

  private func keep(_ path: String, _ version: String) throws {
    let name = path.split(separator: "/").last ?? ""
    try write(contents(of: path), to: Self.fixtures + version + "/" + name)
  }

  static func copied(_ version: String) throws -> VaultFixture {
    let fixture = try VaultFixture()
    for folder in [fixture.directory, fixture.state] { try #require(unsafe mkdir(folder, 0o700) == 0) }
    for name in names(in: Self.fixtures + version) where name != "expected.txt" {
      let folder = name.hasPrefix("vault.") ? fixture.directory : fixture.state
      try write(contents(of: Self.fixtures + version + "/" + name), to: folder + "/" + name)
    }
    return fixture
  }

  static func expected(_ version: String) -> String {
    String(decoding: contents(of: Self.fixtures + version + "/expected.txt"), as: UTF8.self)
  }

  /// Every item with its secret, as text that stays the same.
  static func listing(_ engine: VaultEngine) throws -> String {
    try engine.items().map { item in
      let attributes = item.attributes.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
      return """
        \(item.id.rawValue) \(item.identity.itemClass) \(identity(item.identity).debugDescription)
          label \(item.label?.string.debugDescription ?? "-") size \(item.size) class \(item.accessibility)
          access \(item.access.flags.map(\.rawValue)) programs \(item.programs?.string.debugDescription ?? "-")
          created \(item.created.seconds).\(item.created.nanoseconds) modified \(item.modified.seconds)
          exact \(item.keepsLineEnd) attributes \(attributes)
          secret \(try engine.bytes(of: item.id))

        """
    }.sorted().joined()
  }

  private static func identity(_ identity: ItemIdentity) -> String {
    switch identity {
    case .generic(let service, let account): "\(service)/\(account)"
    case .internet(let all):
      [all.server, all.account, all.domain, all.protocol, all.authenticationType, all.path]
        .map { $0?.string ?? "-" }.joined(separator: "/") + "/\(all.port ?? 99)"
    case .other(let label): label.string
    }
  }
}
