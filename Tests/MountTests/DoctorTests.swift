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
      // It is no fault that a backup mends, and nobody was refused anything.
      #expect(!line.contains("backup") && !line.contains("access was denied"), "\(line)")
      try follow(world, "vault.key")
      try world.check("chmod 755 \"$DATA/keyhole\"")
      try follow(world, "others can enter")
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
      try follow(world, "nothing answers")
      try world.check("keyhole unmount \"$MOUNT\"")
    }
  }

  @Test func processThatWasStopped() async throws {
    try await withKeyhole { keyhole in
      let process = try keyhole.process
      kill(process, SIGSTOP)
      defer { kill(process, SIGCONT) }
      #expect(
        holds(within: .seconds(5)) {
          (try? problems(keyhole.world).contains { $0.contains("is stopped") }) == true
        })
      try follow(keyhole.world, "is stopped")
      try keyhole.check("ls", prints: "defaults\nkeychain\n")
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

  @Test(arguments: [
    "auth-command=/nonexistent", "allow_other,allow_root", "fsname=", "x".padded(to: 5_000),
  ])
  func mountOptionsThatCanNotBeMeantAreRefused(options: String) async throws {
    try await withWorld { world in
      let output = try world.sh("keyhole mount -o keychain=none,\(options) \"$MOUNT\"")
      #expect(output.status == 2 && output.error.utf8.count < 2_000, "\(output)")
    }
  }
}

extension String {
  fileprivate func padded(to count: Int) -> String { String(repeating: self, count: count) }
}
