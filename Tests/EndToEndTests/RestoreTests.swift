import Testing

/// `keyhole restore` beside mounts, and the vault that it has put back.
@Suite(.serialized, .timeLimit(.minutes(5))) struct RestoreTests {
  private static let value = "keychain/generic/s/a/value"

  /// Found by a lock in the state folder; one that was killed holds none.
  @Test func aMountOfAnotherRuntimeFolderIsSeen() async throws {
    try await withWorld { world in
      let other = "export XDG_RUNTIME_DIR=$OUT/other; mkdir -p -m 700 $OUT/other"
      try world.check(
        "printf s | keyhole set \(Self.value); keyhole backup --init > $OUT/key 2> /dev/null; keyhole backup $OUT/b > $OUT/log"
      )
      defer { _ = try? world.sh("fusermount3 -u -z \"$MOUNT\"") }
      try world.check("keyhole mount -o keychain=vault \"$MOUNT\"; printf new > \"$MOUNT/\(Self.value)\"")
      for command in ["restore --yes $OUT/b < $OUT/key", "accept --yes", "upgrade"] {
        let refused = try world.sh("\(other); keyhole \(command)")
        #expect(refused.status == 1 && refused.error.contains("another XDG_RUNTIME_DIR"), "\(refused)")
        #expect(refused.error.contains(world.mount), "\(refused)")
      }
      try world.check("cat \"$MOUNT/\(Self.value)\"", prints: "new")
      // Another home's mounts don't count, and the one of a process that was killed is none.
      try world.check(
        "export HOME=$OUT/home XDG_RUNTIME_DIR=$OUT/other; mkdir -m 700 -p $OUT/home $OUT/other; unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME; keyhole restore --yes $OUT/b < $OUT/key > $OUT/log"
      )
      try world.check(
        "kill -9 $(jq .pid \"$MOUNT/.keyhole/status\"); until flock -s -n $XDG_STATE_HOME/keyhole/mounts/* true; do :; done"
      )
      let restored = try world.sh("\(other); keyhole restore --yes $OUT/b < $OUT/key")
      #expect(restored.status == 0, "\(restored)")
      // The next mount takes away what was left, and leaves nothing itself.
      try world.check(
        "keyhole mount -o keychain=vault \"$MOUNT\"; ls $XDG_STATE_HOME/keyhole/mounts | wc -l; keyhole unmount \"$MOUNT\"; ls $XDG_STATE_HOME/keyhole/mounts",
        prints: "1\n")
    }
  }

  /// The backup is in its places, and the command says what to type.
  @Test func aVaultThatCanNotBeOpenedIsAFailure() async throws {
    try await withWorld { world in
      try world.check(
        "printf s | keyhole set \(Self.value); echo horse | keyhole passphrase --weak --cost 14 2> /dev/null",
        within: LockTests.patience)
      _ = try world.sh("echo pony | keyhole backup --cost 14 $OUT/b", within: LockTests.patience)
      let wrong = try world.sh(
        "{ echo pony; echo donkey; } | keyhole restore --yes $OUT/b", within: LockTests.patience)
      #expect(wrong.status == 1 && wrong.text.contains("restored the backup"), "\(wrong)")
      #expect(wrong.error.contains("not its passphrase; `keyhole accept` asks"), "\(wrong)")
      // The advice.
      let accepted = try world.sh("echo horse | keyhole accept --yes", within: LockTests.patience)
      #expect(accepted.status == 0, "\(accepted)")
      // Left empty, it is asked for later.
      let later = try world.sh("echo pony | keyhole restore --yes $OUT/b", within: LockTests.patience)
      #expect(later.status == 0 && later.error.contains("`keyhole accept`"), "\(later)")
      let states = try world.sh("echo horse | keyhole accept", within: LockTests.patience)
      #expect(!states.text.contains("1 items"), "\(states)")
    }
  }

  @Test func whatIsLeftOutIsSaid() async throws {
    try await withWorld { world in
      let output = try world.sh(
        "keyhole set defaults/s/k 1; ln -s nowhere \"$CONFIG/link.plist\"; touch \"$CONFIG/\"$'f\\xfc.plist'; keyhole backup --init > $OUT/key 2> /dev/null; keyhole backup $OUT/b"
      )
      #expect(output.status == 0 && output.text.contains("1 suite of settings"), "\(output)")
      #expect(
        output.error.contains("link.plist: it is a link that leads to no file; it is not in the backup"),
        "\(output)")
      #expect(
        output.error.contains("f\\xFC.plist: its name is not UTF-8; it is not in the backup"), "\(output)")
    }
  }
}
