import Glibc
import Testing

/// The messages of commands about a vault that differs from its last stored state.
@Suite(.timeLimit(.minutes(5))) struct VaultTrustCommandTests {
  private static let value = "keychain/generic/svc/bob/value"
  private static let folder = "\"$DATA/keyhole\""

  private static let makeOldCopy = """
    printf OLD | keyhole set \(value) && cp -a \(folder) "$OUT/backup" && printf NEW | keyhole set \(value)
    """

  @Test func vaultThatWasPutBackIsSaidAloudAndNotExported() async throws {
    try await withWorld { world in
      try world.check(Self.makeOldCopy)
      try world.check("rm \(Self.folder)/vault.db*; cp -a \"$OUT\"/backup/vault.db* \(Self.folder)/")
      let get = try world.sh("keyhole get \(Self.value)")
      #expect(get.text == "OLD" && get.error.contains("can only be read"), "\(get.error)")
      #expect(try world.sh("keyhole ls keychain/generic").error.contains("put back from a copy"))
      let export = try world.sh("keyhole export --plain keychain")
      #expect(export.status == 1 && export.text.isEmpty && export.error.contains("can only be read"))
      let doctor = try world.sh("keyhole doctor")
      #expect(doctor.status == 1 && doctor.text.contains("put back from a copy"))
    }
  }

  /// A command for one item does not read the others; `ls` and `doctor` do.
  @Test func editOfALargeVaultIsFoundByWhatReadsIt() async throws {
    try await withWorld { world in
      try world.check(
        """
        seq 400 | sed 's/.*/KEY_&=value-&/' > "$OUT/items.env"; keyhole import --to keychain/generic/svc "$OUT/items.env" > /dev/null
        keyhole get keychain/generic/svc/KEY_7/value; printf new | keyhole set keychain/generic/svc/KEY_8/value
        printf more | keyhole set keychain/generic/svc/KEY_401/value; keyhole rm -r keychain/generic/svc/KEY_9
        for key in 8 401; do keyhole get keychain/generic/svc/KEY_$key/value; done
        keyhole get keychain/generic/svc/KEY_9/value 2> /dev/null || echo " gone"
        keyhole rm -r keychain/generic/org.keyhole.rules/rules 2> /dev/null || echo "no rules"
        keyhole ls keychain/generic/svc | wc -l; keyhole doctor > /dev/null
        """, prints: "value-7newmore gone\nno rules\n400\n")
      try world.check(
        "sqlite3 \(Self.folder)/vault.db 'DELETE FROM item WHERE uuid = (SELECT max(uuid) FROM item)'")
      #expect(try world.sh("keyhole ls keychain/generic/svc").error.contains("can only be read"))
      #expect(try world.sh("keyhole doctor").status == 1)
    }
  }

  /// audit.md, H1: the passphrase can't be taken off by an old row.
  @Test func oldSlotPutBackOpensNothing() async throws {
    try await withWorld { world in
      try world.check(Self.makeOldCopy)
      let changed = try world.sh("echo horse | keyhole passphrase --weak", within: LockTests.patience)
      #expect(changed.status == 0 && changed.error.contains("still open with vault.key"))
      try world.check(
        """
        sqlite3 \(Self.folder)/vault.db "ATTACH '$OUT/backup/vault.db' AS b; DELETE FROM slot; INSERT INTO slot SELECT * FROM b.slot"
        """)
      let get = try world.sh("keyhole get \(Self.value)")
      #expect(get.status == 1 && get.text.isEmpty && get.error.contains("older slot"), "\(get.error)")
      #expect(try world.sh("keyhole doctor").status == 1)
    }
  }

  @Test func doctorAsksTheMountThatHasTheKeys() async throws {
    try await withKeyhole { keyhole in
      let world = keyhole.world
      try keyhole.check("mkdir -p keychain/generic/svc/bob; printf OLD > \(Self.value)")
      try world.check(
        "echo horse | keyhole passphrase --weak --cost 14 2> /dev/null", within: LockTests.patience)
      try keyhole.check("cat \(Self.value)", prints: "OLD")
      try keyhole.unmount()
      try world.check("cp -a \(Self.folder) \"$OUT/backup\"")
      try keyhole.start()
      try world.check("echo horse | keyhole unlock", within: LockTests.patience)
      try keyhole.check("printf NEW > \(Self.value)")
      try keyhole.unmount()
      try world.check("rm \(Self.folder)/vault.db*; cp -a \"$OUT\"/backup/vault.db* \(Self.folder)/")
      try keyhole.start()
      let unlock = try world.sh("echo horse | keyhole unlock", within: LockTests.patience)
      #expect(unlock.error.contains("can only be read"), "\(unlock.error)")
      #expect(try world.sh("keyhole doctor").text.contains("put back from a copy"))
      #expect(try world.sh("keyhole get \(Self.value)").error.contains("can only be read"))
      #expect(try world.sh("keyhole export --plain keychain").status == 1)
    }
  }

  @Test func doctorOpensEachSecretAndNamesWhatIsMissing() async throws {
    try await withWorld { world in
      try world.check("printf a | keyhole set \(Self.value); keyhole doctor --secrets > \"$OUT/before\" || :")
      try world.check("sqlite3 \(Self.folder)/vault.db 'DELETE FROM secret'")
      let doctor = try world.sh("keyhole doctor --secrets")
      #expect(doctor.status == 1 && doctor.text.contains("keychain/generic/svc/bob: its secret is missing"))
      #expect(try !world.sh("cat \"$OUT/before\"").text.contains("missing"))
    }
  }

  @Test func vaultOfTheFirstVersionIsUpgraded() async throws {
    let fixtures =
      String(#filePath.dropLast("EndToEndTests/VaultTrustCommandTests.swift".count))
      + "VaultTests/Fixtures/v1"
    try await withWorld { world in
      try world.check(
        """
        mkdir -m 700 -p \(Self.folder) "$XDG_STATE_HOME/keyhole"; cp '\(fixtures)'/vault.* \(Self.folder)/
        cp '\(fixtures)'/*.anchor '\(fixtures)'/device.key "$XDG_STATE_HOME/keyhole/"
        chmod 600 \(Self.folder)/* "$XDG_STATE_HOME"/keyhole/*
        """)
      try world.check("keyhole get keychain/generic/mail/me/value", prints: "not a secret")
      let set = try world.sh("printf x | keyhole set keychain/generic/mail/me/value")
      #expect(set.status == 1 && set.error.contains("keyhole upgrade"))
      let upgrade = try world.sh("keyhole upgrade", within: LockTests.patience)
      #expect(upgrade.status == 0 && upgrade.text.contains("vault-1.db"), "\(upgrade.error)")
      try world.check("keyhole get keychain/generic/mail/me/value", prints: "not a secret")
      try world.check("printf x | keyhole set keychain/generic/mail/me/value")
      #expect(try world.sh("keyhole upgrade").text.contains("nothing was changed"))
    }
  }
}
