import Glibc
import Testing

/// Every sentence of `keyhole doctor`'s advice works when it is typed.
@Suite(.serialized, .timeLimit(.minutes(2))) struct DoctorTests {
  /// The problems that doctor names: whole lines.
  private func problems(_ world: World) throws -> [String] {
    try world.sh("keyhole doctor").text.split(separator: "\n").map(String.init).filter {
      $0.hasPrefix("problem")
    }
  }

  /// Takes the first command of the problem that has `word` in it, types it, and expects the problem gone.
  private func follow(_ world: World, _ word: String, sourceLocation: SourceLocation = #_sourceLocation)
    throws
  {
    let line = try #require(try problems(world).first { $0.contains(word) }, sourceLocation: sourceLocation)
    let parts = line.split(separator: "`", omittingEmptySubsequences: false)
    try #require(parts.count >= 3, "there is no command in: \(line)", sourceLocation: sourceLocation)
    let command = String(parts[1])
    let output = try world.sh(command)
    #expect(output.status == 0, "\(command): \(output)", sourceLocation: sourceLocation)
    let rest = try problems(world)
    #expect(!rest.contains { $0.contains(word) }, "\(command): \(rest)", sourceLocation: sourceLocation)
  }

  @Test func rightsOfFiles() async throws {
    try await withWorld { world in
      try world.check("printf s | keyhole set keychain/generic/s/a/value")
      try world.check("chmod 644 \"$DATA/keyhole/vault.key\"")
      let line = try #require(try problems(world).first { $0.contains("vault.key") })
      // The problem is not one that a backup repairs, and no access was denied.
      #expect(!line.contains("backup") && !line.contains("access was denied"), "\(line)")
      try follow(world, "vault.key")
      try world.check("chmod 755 \"$DATA/keyhole\"")
      try follow(world, "others can enter")
    }
  }

  /// A file without the right to read it seemed to be missing, and one without the right to write it was no problem.
  @Test(arguments: [
    ("chmod 000 \"$DATA/keyhole\"", "/keyhole: its permissions"),
    ("chmod 500 \"$DATA/keyhole\"", "/keyhole: its permissions"),
    ("chmod 400 \"$DATA/keyhole/vault.db\"", "vault.db: its permissions"),
    ("chmod 000 \"$XDG_STATE_HOME/keyhole\"", "/keyhole: its permissions"),
    ("chmod 000 \"$XDG_STATE_HOME\"/keyhole/*.anchor", ".anchor: its permissions"),
    ("chmod 500 \"$CONFIG\"", ": its permissions"), ("chmod 000 \"$CONFIG\"", ": its permissions"),
  ])
  func rightsThatTheUserLacks(spoiling: String, word: String) async throws {
    // Root may read every file.
    guard !Privileges.isRoot else { return }
    try await withWorld { world in
      try world.check(
        "printf s | keyhole set keychain/generic/s/a/value; keyhole set defaults/s/k 1; \(spoiling)")
      #expect(try problems(world).count == 1)
      try follow(world, word)
      try world.check(
        "keyhole set defaults/s/k 2; printf t | keyhole set keychain/generic/s/a/value; keyhole get keychain/generic/s/a/value",
        prints: "t")
      #expect(try problems(world).isEmpty)
    }
  }

  /// Every command names the file that keeps a key from being read or set, and what mends it.
  @Test func suiteThatCanNotBeRead() async throws {
    try await withWorld { world in
      try world.check(
        "keyhole set defaults/s/k 1; keyhole set defaults/ok/k 1; cp \"$CONFIG/s.plist\" \"$OUT/copy\"")
      try world.check("echo garbage > \"$CONFIG/s.plist\"")
      for command in ["get", "attr", "rm", "ls"] {
        let output = try world.sh("keyhole \(command) defaults/s/k")
        #expect(
          output.status == 1 && output.error.contains("\(world.config)/s.plist: it is not read as"),
          "\(output)")
        #expect(output.error.contains("put back a copy of the file"), "\(output)")
      }
      for command in [
        "keyhole set defaults/s/k 2", "keyhole set defaults/s/new 2", "EDITOR=true keyhole edit defaults/s/k",
      ] {
        let output = try world.sh(command)
        #expect(
          output.status == 1 && output.error.contains("\(world.config)/s.plist"), "\(command): \(output)")
      }
      // Others are what they were.
      let missing = try world.sh("keyhole get defaults/ok/none")
      #expect(missing.error.contains("there is no such file"), "\(missing)")
      try world.check(
        "cp \"$OUT/copy\" \"$CONFIG/s.plist\"; keyhole get defaults/s/k; keyhole doctor > \"$OUT/d\"",
        prints: "1\n")
    }
  }

  @Test func suiteWithoutTheRightToReadIt() async throws {
    // Root may read every file.
    guard !Privileges.isRoot else { return }
    try await withWorld { world in
      try world.check("keyhole set 'defaults/my suite/k' 1; chmod 000 \"$CONFIG/my suite.plist\"")
      let output = try world.sh("keyhole get 'defaults/my suite/k'")
      #expect(output.error.contains("`chmod u+r '\(world.config)/my suite.plist'`"), "\(output)")
      try follow(world, "my suite.plist")
      try world.check("keyhole get 'defaults/my suite/k'", prints: "1\n")
    }
  }

  /// Not even its name can be read, so no path leads to it: what is left moves to a new vault.
  @Test func damagedEntry() async throws {
    try await withWorld { world in
      try world.check(
        """
        printf a | keyhole set keychain/generic/s/a/value; printf b | keyhole set keychain/generic/s/b/value
        sqlite3 "$DATA/keyhole/vault.db" 'update item set sealed = zeroblob(length(sealed)) where uuid = (select max(uuid) from item)'
        """)
      let line = try #require(try problems(world).first { $0.contains("its entry in the vault is damaged") })
      #expect(line.contains("`keyhole export -o FILE`") && line.contains("`keyhole import FILE`"), "\(line)")
      let export = try world.sh("echo horse | keyhole export --cost 14 -o $OUT/e", within: LockTests.patience)
      #expect(export.status == 1 && export.error.contains("it is damaged and was left out"), "\(export)")
      let moved = try world.sh(
        "mv \"$DATA/keyhole\" \"$OUT/damaged\"; echo horse | keyhole import $OUT/e",
        within: LockTests.patience)
      #expect(moved.status == 0, "\(moved)")
      #expect(try world.sh("keyhole ls keychain/generic/s").text.count == 2)
      #expect(try problems(world).isEmpty)
    }
  }

  /// The last moment to save what only a mount still opens.
  @Test func keyFileThatIsGoneUnderAMount() async throws {
    try await withKeyhole { keyhole in
      let world = keyhole.world
      try keyhole.check("mkdir -p keychain/generic/s/a; printf s > keychain/generic/s/a/value")
      try world.check("mv \"$DATA/keyhole/vault.key\" \"$OUT/kept\"")
      let line = try #require(try problems(world).first { $0.contains("what is mounted now stays open") })
      #expect(line.contains("`keyhole export`"), "\(line)")
      let export = try world.sh("keyhole export --plain --format json")
      #expect(export.status == 0 && export.text.contains("\"s\""), "\(export)")
      try world.check("keyhole get keychain/generic/s/a/value", prints: "s")
      try world.check("mv \"$OUT/kept\" \"$DATA/keyhole/vault.key\"")
      #expect(try problems(world).isEmpty)
    }
  }

  /// Half of a backup: the key file alone. Reading makes no vault, says what is missing, and exports nothing.
  @Test func keyWithoutItsVault() async throws {
    try await withWorld { world in
      try world.check(
        "printf s | keyhole set keychain/generic/s/a/value; mv \"$DATA/keyhole/vault.db\" \"$OUT/kept\"; rm -f \"$DATA\"/keyhole/vault.db-*"
      )
      for command in ["ls keychain/generic", "get keychain/generic/s/a/value"] {
        let output = try world.sh("keyhole \(command)")
        #expect(
          output.text.isEmpty && output.error.contains("vault.db: it is missing, but its key file"),
          "\(output)")
      }
      let export = try world.sh("keyhole export --plain --format json")
      #expect(
        export.status == 1 && export.text.isEmpty && export.error.contains("it is missing"), "\(export)")
      #expect(try problems(world).contains { $0.contains("its key file vault.key is there") })
      try world.check("ls \"$DATA/keyhole\" | grep -v reserve", prints: "vault.key\n")
      // The advice.
      try world.check(
        "mv \"$OUT/kept\" \"$DATA/keyhole/vault.db\"; keyhole get keychain/generic/s/a/value", prints: "s")
      #expect(try problems(world).isEmpty)
    }
  }

  /// Of a restore that did not bring the vault, a mount makes an empty one.
  @Test func vaultThatIsEmptyWhereAnotherWas() async throws {
    try await withWorld { world in
      try world.check("printf s | keyhole set keychain/generic/s/a/value; mv \"$DATA/keyhole\" \"$OUT/kept\"")
      try world.check("keyhole mount -o keychain=vault \"$MOUNT\" && keyhole unmount \"$MOUNT\"")
      let note = try world.sh("keyhole doctor | grep ^note")
      #expect(note.text.contains("it is empty, and this user has had another vault"), "\(note)")
      try world.check(
        "rm -r \"$DATA/keyhole\"; mv \"$OUT/kept\" \"$DATA/keyhole\"; keyhole get keychain/generic/s/a/value",
        prints: "s")
      #expect(try !world.sh("keyhole doctor").text.contains("another vault"))
    }
  }

  /// `auto` keeps the Secret Service; nothing takes its place without a word.
  @Test func keyringThatIsOutOfReach() async throws {
    try await withWorld { world in
      try world.check(
        "mkdir -m 700 \"$XDG_STATE_HOME/keyhole\"; echo secret-service > \"$XDG_STATE_HOME/keyhole/keychain\""
      )
      for command in [
        "ls keychain", "get keychain/generic/s/a/value", "set keychain/generic/s/a/value", "mount \"$MOUNT\"",
        "export --plain --format json",
      ] {
        let output = try world.sh("echo x | keyhole \(command)")
        #expect(
          output.status == 1 && output.text.isEmpty && output.error.contains("has chosen it first"),
          "\(command): \(output)")
        #expect(output.error.contains("`keyhole mount -o keychain=vault`"), "\(output)")
      }
      #expect(try System.names(world.data).isEmpty)
      let line = try #require(try problems(world).first { $0.contains("Secret Service") })
      #expect(line.contains("`keychain=auto` has chosen it first"))
      // The advice, with this test's mount point.
      try world.check(
        "keyhole mount -o keychain=vault \"$MOUNT\"; echo x | keyhole set keychain/generic/s/a/value; keyhole get keychain/generic/s/a/value",
        prints: "x")
      #expect(try !problems(world).contains { $0.contains("Secret Service") })
      try world.check(
        "keyhole unmount \"$MOUNT\"; cat \"$XDG_STATE_HOME/keyhole/keychain\"", prints: "secret-service\n")
    }
  }

  /// As a kernel without memfd_secret(2) has it.
  static let withoutSecretMemory = """
    cat > $OUT/filter.py << 'END'
    import ctypes, os, struct, sys
    words = [(0x20, 0, 0, 0), (0x15, 0, 1, 447), (0x06, 0, 0, 0x50000 | 38), (0x06, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *word) for word in words))
    program = struct.pack("HxxxxxxQ", len(words), ctypes.addressof(code))
    library = ctypes.CDLL(None, use_errno=True)
    assert library.prctl(38, 1, 0, 0, 0) == 0
    assert library.prctl(22, 2, program, 0, 0) == 0
    os.execvp(sys.argv[1], sys.argv[1:])
    END
    cat > $OUT/follow << 'END'
    memory() { keyhole doctor 2> /dev/null | grep RLIMIT_MEMLOCK; }
    command=$(memory | cut -d '`' -f 2); echo "$command"
    eval "$command"; memory || echo enough
    END

    """

  @Test func tooLittleLockedMemory() async throws {
    try await withWorld { world in
      // The memory of memfd_secret(2) has the same limit.
      for program in ["", "python3 $OUT/filter.py "] {
        let output = try world.sh(Self.withoutSecretMemory + "ulimit -l 64; \(program)keyhole doctor")
        #expect(output.text.contains("problem  RLIMIT_MEMLOCK: 64 KiB"), "\(output)")
      }
      // Without a hard limit of that size only root can raise it.
      guard try world.sh("ulimit -H -l").text != "64\n" else { return }
      let soft = try world.sh("ulimit -S -l 64; keyhole doctor")
      #expect(!soft.text.contains("RLIMIT_MEMLOCK"), "\(soft)")
    }
  }

  @Test func runtimeFolderThatOthersCanUse() async throws {
    try await withKeyhole { keyhole in
      try keyhole.world.check("chmod 755 \"$XDG_RUNTIME_DIR/keyhole\"")
      try follow(keyhole.world, "others can use it")
    }
  }

  @Test func processThatDied() async throws {
    try await withWorld { world in
      defer { _ = try? world.sh("fusermount3 -u -z \"$MOUNT\"") }
      try world.check("keyhole mount -o keychain=none \"$MOUNT\"; keyhole set defaults/s/k 1")
      try world.check(
        "kill -9 $(jq .pid \"$MOUNT/.keyhole/status\"); while stat \"$MOUNT\" >/dev/null 2>&1; do :; done")
      #expect(try problems(world).count == 1)
      try follow(world, "has died")
      try world.check("cat \"$MOUNT/defaults/s/k\"; keyhole unmount \"$MOUNT\"", prints: "1\n")
    }
  }

  /// As an aborted connection leaves it: in the table, with no process and no note of one.
  @Test func mountThatNothingAnswersFor() async throws {
    try await withWorld { world in
      defer { _ = try? world.sh("fusermount3 -u -z \"$MOUNT\"") }
      try world.check("keyhole mount -o keychain=none \"$MOUNT\"")
      try world.check(
        """
        kill -9 $(jq .pid "$MOUNT/.keyhole/status"); while stat "$MOUNT" >/dev/null 2>&1; do :; done
        rm "$XDG_RUNTIME_DIR"/keyhole/*
        """)
      let status = try world.sh("keyhole status")
      #expect(status.status == 1 && status.error.contains(world.mount), "\(status)")
      // The mount point is outside of the home folder: the mount may have been one of other stores.
      try follow(world, "nothing answers")
      try world.check("keyhole mount -o keychain=none \"$MOUNT\"; keyhole unmount \"$MOUNT\"")
    }
  }

  @Test func processThatWasStopped() async throws {
    try await withKeyhole { keyhole in
      let process = try keyhole.process
      kill(process, SIGSTOP)
      defer { kill(process, SIGCONT) }
      #expect(
        holds {
          (try? problems(keyhole.world).contains { $0.contains("is stopped") }) == true
        })
      #expect(try problems(keyhole.world).count == 1)
      // `kill` alone does not end it.
      let status = try keyhole.world.sh("keyhole status")
      #expect(status.status == 1 && status.error.contains("`kill -CONT \(process)`"), "\(status)")
      try follow(keyhole.world, "is stopped")
      try keyhole.check("ls", prints: "defaults\nkeychain\ntemplates\nviews\n")
    }
  }

  @Test func failureToMountNamesDoctor() async throws {
    try await withWorld { world in
      let output = try world.sh("keyhole mount -o keychain=none,fsname=a, \"\"")
      #expect(
        output.status == 1 && output.error.contains("empty path") && !output.error.contains("\0"), "\(output)"
      )
    }
  }

  @Test func severalMountsAreNotTakenForOne() async throws {
    try await withWorld { world in
      try world.check(
        "mkdir \"$OUT/two\"; chmod 700 \"$OUT/two\"; keyhole mount -o keychain=none \"$MOUNT\"; keyhole mount -o keychain=none \"$OUT/two\""
      )
      defer { _ = try? world.sh("fusermount3 -u -z \"$MOUNT\"; fusermount3 -u -z \"$OUT/two\"") }
      let output = try world.sh("keyhole unmount")
      #expect(
        output.status == 1 && output.error.contains(world.mount) && output.error.contains("/two"), "\(output)"
      )
      try world.check("keyhole unmount \"$MOUNT\"; keyhole unmount")
    }
  }
}
