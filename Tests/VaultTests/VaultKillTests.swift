import Crypto
import GRDB
import Glibc
import Model
import Store
import StoreConformance
import Testing

@testable import Vault
@testable import VaultDatabase
@testable import VaultRecords

/// The remains of a process that is killed at any statement of a change of all keys, or of an upgrade: the files as the
/// kernel has them at that moment.
@Suite(.timeLimit(.minutes(3))) struct VaultKillTests {
  @Test func passphraseThatIsChangedIsTheOldOneOrTheNew() throws {
    let fixture = try VaultFixture()
    let engine = try fixture.open()
    let secret = [UInt8](repeating: 7, count: 40_000)
    // More than SQLite's cache, so that the log has half of a transaction.
    for index in 0..<40 {
      let item = try engine.add(KeychainSamples.generic(ExactString("\(index)")), "")
      try engine.set(item.id, secret)
    }
    let states = try Self.states(fixture, of: engine) {
      try engine.change(
        to: .passphraseAndKeyFile, KeychainSamples.secret("new"), present: KeychainSamples.secret(""),
        cost: .least)
    }
    var opened: Set<String> = []
    for state in states {
      let survivor = try state.restored()
      let vault = try survivor.open()
      if vault.needsPassphrase { try vault.unlock(KeychainSamples.secret("new")) }
      opened.insert(vault.needsPassphrase ? "new" : "old")
      #expect(vault.problems().isEmpty && vault.trust == .trusted, "\(vault.problems())")
      #expect(try vault.checkSecrets().opened == 40)
      let item = try #require(try vault.items().last)
      #expect(try vault.bytes(of: item.id) == secret)
    }
    #expect(opened == ["old", "new"] && states.count > 3)
  }

  @Test func upgradeLeavesTheOldVaultOrTheNew() throws {
    let fixture = try VaultFormatTests.copied("v1")
    let file = try VaultFile(opening: VaultDirectory(fixture.directory, state: fixture.state))
    var states: [KilledState] = []
    try file.connection.run { database in
      database.trace(options: [.statement, .profile]) { _ in states.append(KilledState(fixture)) }
    }
    _ = try VaultUpgrade.run(file, KeychainSamples.secret(""), .refusesDistrusted, .least)
    states.append(KilledState(fixture))
    var formats: Set<VaultFormat> = []
    for state in Set(states) {
      let survivor = try state.restored()
      let vault = try survivor.open()
      #expect(try VaultFormatTests.listing(vault) == VaultFormatTests.expected("v1"))
      #expect(vault.trust == .trusted)
      let place = try VaultDirectory(survivor.directory, state: survivor.state)
      formats.insert(try VaultFile(opening: place).header.format)
      _ = try VaultUpgrade.run(place, KeychainSamples.secret(""), .refusesDistrusted, .least)
      #expect(try survivor.open().problems().isEmpty)
    }
    #expect(formats == [.one, .two])
  }

  /// The different states in which a kill could have left the files.
  private static func states(
    _ fixture: VaultFixture, of engine: VaultEngine, _ change: () throws -> Void
  ) throws -> Set<KilledState> {
    var states: Set<KilledState> = [KilledState(fixture)]
    try engine.withSession { session throws(StoreError) in
      try session.connection.run { database in
        // Only some of the many: each is the whole vault.
        var count = 0
        database.trace(options: [.statement, .profile]) { _ in
          count += 1
          if count % 37 == 0 || count < 20 { states.insert(KilledState(fixture)) }
        }
      }
    }
    try change()
    states.insert(KilledState(fixture))
    return states
  }
}

/// The files of a vault at one moment.
private struct KilledState: Hashable {
  let vault: [String: [UInt8]]
  let device: [String: [UInt8]]

  init(_ fixture: VaultFixture) {
    vault = fixture.snapshot()
    device = Dictionary(
      uniqueKeysWithValues: names(in: fixture.state).map { ($0, contents(of: fixture.state + "/" + $0)) })
  }

  func restored() throws -> VaultFixture {
    let survivor = try VaultFixture()
    try survivor.restore(vault)
    try #require(unsafe mkdir(survivor.state, 0o700) == 0)
    for (name, bytes) in device { try write(bytes, to: survivor.state + "/" + name) }
    return survivor
  }
}
