import Glibc
import Testing

/// The vault's files while Keyhole is mounted, and copies of them.
@Suite(.timeLimit(.minutes(2))) struct VaultCopyTests {
  static let value = "keychain/generic/s/a/value"

  private static func withVault(body: (MountedKeyhole) throws -> Void) async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir -p keychain/generic/s/a; printf old > \(value)")
      try body(keyhole)
    }
  }

  /// The backup of the README: `cp` of two files, put into a new home.
  @Test func afterUnmountTwoFilesAreTheWholeVault() async throws {
    try await Self.withVault { keyhole in
      try keyhole.unmount()
      // To the same user of the same machine, the vault misses its anchor, which is said on standard error.
      let copy = try keyhole.world.sh(
        """
        new=$OUT/new; mkdir -p -m 700 $new/.local/share/keyhole
        cp $DATA/keyhole/vault.db $DATA/keyhole/vault.key $new/.local/share/keyhole/
        unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_RUNTIME_DIR
        HOME=$new keyhole get \(Self.value)
        """)
      #expect(copy.status == 0 && copy.text == "old", "\(copy)")
      try keyhole.start()
    }
  }

  @Test func afterACommandTwoFilesAreTheWholeVault() async throws {
    try await Self.withVault { keyhole in
      let copy = try keyhole.world.sh(
        """
        printf new | keyhole set \(Self.value)
        new=$OUT/new; mkdir -p -m 700 $new/.local/share/keyhole
        cp $DATA/keyhole/vault.db $DATA/keyhole/vault.key $new/.local/share/keyhole/
        unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_RUNTIME_DIR
        HOME=$new keyhole get \(Self.value)
        """)
      #expect(copy.status == 0 && copy.text == "new", "\(copy)")
    }
  }

  /// VaultReplacedTests has each way in which it can go.
  @Test func aWriteToAVaultThatIsGoneFails() async throws {
    try await Self.withVault { keyhole in
      try keyhole.world.check("rm -r $DATA/keyhole")
      try keyhole.refuses("echo new > \(Self.value)", .io)
      try keyhole.refuses("rm \(Self.value)", .io)
      try keyhole.check("cat \(Self.value)", prints: "old")
      let status = try keyhole.world.sh("keyhole status")
      #expect(status.text.contains("removed or moved away while it was open"), "\(status)")
      let doctor = try keyhole.world.sh("keyhole doctor")
      #expect(doctor.status == 1 && doctor.text.contains("removed or moved away"), "\(doctor)")
    }
  }

  @Test(arguments: [
    "cp -a $DATA/keyhole $OUT/copy; rm -r $DATA/keyhole; cp -a $OUT/copy $DATA/keyhole",
    "cd $DATA/keyhole; cp vault.db copy; cp copy vault.db",
  ])
  func whatIsAcknowledgedAfterAReplacementIsThereAfterUnmount(_ replacement: String) async throws {
    try await Self.withVault { keyhole in
      // A copy is whole once the log is in it.
      let log = keyhole.world.data + "/keyhole/vault.db-wal"
      let isWhole = try holds { try System.status(log).st_size == 0 }
      #expect(isWhole)
      try keyhole.world.check(replacement)
      // It may be refused until the mount has opened the other file.
      let isStored = try holds {
        try keyhole.sh("printf new > \(Self.value)").status == 0
      }
      #expect(isStored)
      try keyhole.check("cat \(Self.value)", prints: "new")
      try keyhole.unmount()
      try keyhole.world.check("keyhole get \(Self.value)", prints: "new")
      try keyhole.start()
    }
  }

}

extension VaultCopyTests {
  @Test func anOlderVaultIsAcceptedByACommand() async throws {
    try await withWorld { world in
      try world.check("printf old | keyhole set \(Self.value); cp -a $DATA/keyhole $OUT/copy")
      try world.check("printf new | keyhole set \(Self.value)")
      try world.check("rm -r $DATA/keyhole; cp -a $OUT/copy $DATA/keyhole")
      let set = try world.sh("printf newer | keyhole set \(Self.value)")
      #expect(set.status == 1 && set.error.contains("older"), "\(set)")
      let accept = try world.sh("keyhole accept --yes")
      #expect(accept.status == 0 && accept.text.contains("last seen"), "\(accept)")
      try world.check("printf newer | keyhole set \(Self.value); keyhole get \(Self.value)", prints: "newer")
    }
  }
}
