import GRDB
import Glibc
import Model
import SecretMemory
import Store
import StoreConformance
import Testing

@testable import Vault
@testable import VaultDatabase
@testable import VaultRecords

/// The slots with a public key that Keyhole makes: of a recovery code and of a systemd credential.
@Suite(.timeLimit(.minutes(2))) struct VaultRecoveryTests {
  private let fixture: VaultFixture

  init() throws {
    fixture = try VaultFixture()
  }

  private func change(
    _ engine: VaultEngine, _ new: String, present: String = "", adding secrets: [SlotSecret] = [],
    removing kinds: Set<SlotSecret.Kind> = []
  ) throws {
    var further = FurtherSecretsChange()
    (further.added, further.removed) = (secrets, kinds)
    try engine.change(
      to: new.isEmpty ? .keyFile : .passphraseAndKeyFile, KeychainSamples.secret(new),
      present: KeychainSamples.secret(present), cost: .least, further: further)
  }

  /// A vault with the passphrase `first`, an item of each class that a passphrase opens, and these secrets.
  private func makeVault(_ secrets: [SlotSecret]) throws -> [ItemID] {
    let engine = try fixture.open()
    try change(engine, "first", adding: secrets)
    return try [Accessibility.whenUnlocked, .whenPasscodeSetThisDeviceOnly].map { accessibility in
      var item = KeychainSamples.generic("service", ExactString("\(accessibility)"))
      item.accessibility = accessibility
      return try engine.add(item, secret: KeychainSamples.secret("secret of \(accessibility)")).id
    }
  }

  private func secrets(_ engine: VaultEngine, _ ids: [ItemID]) throws -> [String] {
    try ids.map { String(decoding: KeychainSamples.bytes(try engine.secret(of: $0)), as: UTF8.self) }
  }

  private static let contents = [
    "secret of whenUnlocked", "secret of whenPasscodeSetThisDeviceOnly",
  ]

  /// As a person types it.
  private func typed(_ code: SlotSecret) throws -> SlotSecret {
    try RecoveryCode.parse(RecoveryCode.text(of: code).span)
  }

  @Test func aRecoveryCodeSetsANewPassphrase() throws {
    let (code, next) = (try RecoveryCode.make(), try RecoveryCode.make())
    let ids = try makeVault([code])
    // It opens the vault without the key file too.
    #expect(unsafe unlink(fixture.key) == 0)
    var further = FurtherSecretsChange()
    further.added = [next]
    try fixture.open().recover(
      with: typed(code), to: .passphraseAndKeyFile, KeychainSamples.secret("second"), cost: .least,
      further: further)
    let engine = try fixture.open()
    #expect(throws: StoreError.rejected) { try engine.unlock(KeychainSamples.secret("first")) }
    try engine.unlock(KeychainSamples.secret("second"))
    #expect(try secrets(engine, ids) == Self.contents)
    #expect(throws: StoreError.rejected) { try fixture.open().unlock(with: code) }
    try fixture.open().unlock(with: next)
  }

  /// Without the key file the recovery code is a way: the message has it, where there is a code.
  @Test(arguments: [true, false]) func aLostKeyFileNamesTheRecoveryCode(hasCode: Bool) throws {
    _ = try makeVault(hasCode ? [RecoveryCode.make()] : [])
    let states: [() -> Void] = [
      { [fixture] in _ = unsafe chmod(fixture.key, 0o644) },
      { [fixture] in _ = unsafe truncate(fixture.key, 7) },
      { [fixture] in _ = unsafe unlink(fixture.key) },
    ]
    for spoil in states {
      spoil()
      let error = #expect(throws: StoreError.self) {
        try fixture.open().unlock(KeychainSamples.secret("first"))
      }
      let message = error?.message ?? ""
      let problem = try fixture.open().problems().first { $0.subject == fixture.key }
      if !message.contains("chmod") {
        #expect(
          problem?.remedy.contains("keyhole passphrase --recover") == hasCode,
          "\(String(describing: problem))")
      }
      #expect(
        message.contains("vault.key") && message.contains("keyhole passphrase --recover") == hasCode,
        "\(message)")
      _ = unsafe chmod(fixture.key, 0o600)
    }
  }

  @Test func aChangedPassphraseKeepsCodeAndCredential() throws {
    let (code, credential) = (try RecoveryCode.make(), try LoginCredential.make())
    let ids = try makeVault([code, credential])
    try change(fixture.open(), "second", present: "first")
    try change(fixture.open(), "third", present: "second")
    for secret in [code, credential] {
      let engine = try fixture.open()
      #expect(engine.furtherSecrets == [.recoveryCode, .credential])
      try engine.unlock(with: secret)
      #expect(try secrets(engine, ids) == Self.contents)
    }
    try change(fixture.open(), "third", present: "third", removing: [.credential])
    #expect(throws: StoreError.rejected) { try fixture.open().unlock(with: credential) }
    #expect(try fixture.open().furtherSecrets == [.recoveryCode])
  }

  @Test func bothGoWithThePassphrase() throws {
    let (code, credential) = (try RecoveryCode.make(), try LoginCredential.make())
    _ = try makeVault([code, credential])
    try change(fixture.open(), "", present: "first")
    #expect(try fixture.open().furtherSecrets.isEmpty)
    #expect(throws: StoreError.rejected) { try fixture.open().unlock(with: code) }
  }

  @Test func anotherCodeChangesNothing() throws {
    _ = try makeVault([RecoveryCode.make()])
    let before = try VaultFile(opening: VaultDirectory(fixture.directory, state: fixture.state)).slots()
    #expect(throws: StoreError.rejected) {
      try fixture.open().recover(
        with: RecoveryCode.make(), to: .passphraseAndKeyFile, KeychainSamples.secret("mine"), cost: .least,
        further: FurtherSecretsChange())
    }
    #expect(try VaultFile(opening: VaultDirectory(fixture.directory, state: fixture.state)).slots() == before)
  }

  /// A program that may write the file puts a public key of its own into the slot: no new master key is sealed to it.
  @Test func aForgedPublicKeyGetsNoNewMasterKey() throws {
    let ids = try makeVault([RecoveryCode.make()])
    let forged = try RecoveryCode.make()
    let file = try VaultFile(opening: VaultDirectory(fixture.directory, state: fixture.state))
    let old = try #require(try file.slots().first { $0.kind == KeySlot.Kind.recoveryCode.rawValue })
    // Of a vault with keys of the attacker's: the checksum is right, and it opens with the attacker's code.
    let slot = try KeySlot(id: old.id, forged, .random(withPasscode: true), file.header)
    try DatabaseQueue(path: fixture.database).write { database in
      try database.execute(sql: "DELETE FROM slot WHERE id = ?", arguments: [Int64(old.id)])
      try slot.insert(database, .two)
    }
    do {
      try change(fixture.open(), "second", present: "first")
      Issue.record("the passphrase was changed")
    } catch let error as StoreError {
      #expect(error.kind == "readOnly")
    }
    #expect(throws: StoreError.self) { try fixture.open().unlock(with: forged) }
    let engine = try fixture.open()
    try engine.unlock(KeychainSamples.secret("first"))
    #expect(try secrets(engine, ids) == Self.contents)
    // Accepted by its owner, the vault loses the slot.
    try engine.acceptRollback()
    #expect(engine.furtherSecrets.isEmpty)
  }

  @Test func aCredentialOpensTheVaultFromAFolder() throws {
    let credential = try LoginCredential.make()
    let ids = try makeVault([credential])
    let folder = fixture.root + "/credentials"
    try #require(unsafe mkdir(folder, 0o700) == 0)
    let engine = try fixture.open()
    let missing = VaultCredential(in: folder)
    #expect(missing.map { _ in true } == nil)
    try write(LoginCredential.text(of: credential), to: folder + "/keyhole.unlock")
    try engine.unlock(with: #require(VaultCredential(in: folder)))
    #expect(try secrets(engine, ids) == Self.contents)
    try write(LoginCredential.text(of: LoginCredential.make()), to: folder + "/keyhole.unlock")
    #expect(throws: StoreError.accessDenied(reason: "it is another vault's, or was removed")) {
      try fixture.open().unlock(with: #require(VaultCredential(in: folder)))
    }
    try write(KeychainSamples.secret("nonsense"), to: folder + "/keyhole.unlock")
    #expect(throws: StoreError.self) {
      try fixture.open().unlock(with: #require(VaultCredential(in: folder)))
    }
  }

  private func write(_ text: borrowing SecretBytes, to path: String) throws {
    unsafe unlink(path)
    let file = unsafe open(path, O_WRONLY | O_CREAT, 0o600)
    defer { close(file) }
    let bytes = KeychainSamples.bytes(text)
    try #require(unsafe Glibc.write(file, bytes, bytes.count) == bytes.count)
  }
}
