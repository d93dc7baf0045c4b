import Glibc
import Testing

/// A mount that is gone from its own mount namespace, of which another one (a container) has a copy, or a program has a file
/// open.
@Suite(.timeLimit(.minutes(2))) struct DetachedMountTests {
  private static let canUnshare =
    (try? Program(["/usr/bin/unshare", "-Urm", "true"], environment: [], directory: "/").finish().status) == 0

  /// A shell in namespaces of its own, with a copy of the mount. It says `ready`, and runs the rest for a line of input.
  private static func holder(_ keyhole: MountedKeyhole, _ first: String, _ rest: String) throws -> Program {
    let script = "\(first); echo ready; read -r line; \(rest)"
    let program = try Program(
      [
        "/usr/bin/unshare", "--user", "--map-root-user", "--mount", "--propagation", "private", "/bin/bash",
        "-c", script,
      ], environment: keyhole.world.environment, directory: keyhole.world.outside)
    try #require(try program.line() == "ready")
    return program
  }

  private static let gone = "Transport endpoint is not connected"

  @Test(.enabled(if: canUnshare, "needs user namespaces")) func processEndsWhereOnlyACopyIsLeft() async throws
  {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir defaults/s; echo 1 > defaults/s/k")
      let holder = try Self.holder(
        keyhole, "cat \"$MOUNT/defaults/s/k\" > /dev/null; cd \"$MOUNT\"", "ls \"$MOUNT\" 2>&1; ls . 2>&1")
      let (program, process) = (try keyhole.program, try keyhole.process)
      try keyhole.world.check("keyhole unmount \"$MOUNT\"")
      // It has ended by then, and nothing of it is left.
      #expect(program.hasEnded)
      #expect(
        try System.names(keyhole.world.runtime + "/keyhole").filter { $0.hasPrefix("\(process).") } == [])
      try holder.send("go\n")
      let text = try holder.finish().text
      #expect(text.components(of: Self.gone) == 2, "\(text)")
      try keyhole.world.check("keyhole get defaults/s/k", prints: "1\n")
    }
  }

  /// A file that is open there is served to its end, and nothing else is.
  @Test(.enabled(if: canUnshare, "needs user namespaces")) func whatIsOpenIsServedToItsEnd() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir -p defaults/s; echo 1 > defaults/s/k; echo 2 > defaults/s/other")
      let holder = try Self.holder(
        keyhole, "exec 3> \"$MOUNT/defaults/s/k\"",
        "cat \"$MOUNT/defaults/s/other\" 2>&1; echo 7 >&3; exec 3>&-; echo closed")
      let program = try keyhole.program
      try keyhole.world.check("fusermount3 -u \"$MOUNT\"")
      let folder = keyhole.world.runtime + "/keyhole"
      #expect(
        try holds {
          try System.names(folder).allSatisfy { !$0.hasPrefix("\(program.process).") }
        })
      #expect(!program.hasEnded)
      try holder.send("go\n")
      #expect(try holder.line()?.contains(Self.gone) == true)
      #expect(try holder.line() == "closed")
      #expect(try program.waitForEnd(until: Deadline(in: .seconds(20))) == 0)
      try keyhole.world.check("keyhole get defaults/s/k", prints: "7\n")
    }
  }

  @Test func fileThatIsOpenAtALazyUnmountIsStored() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir -p defaults/s keychain/generic/s/a; echo 1 > defaults/s/k; printf old > keychain/generic/s/a/value"
      )
      let program = try keyhole.program
      let files = [
        try OpenFile(keyhole / "defaults/s/k", O_RDWR),
        try OpenFile(keyhole / "keychain/generic/s/a/value", O_RDWR),
      ]
      try keyhole.world.check("keyhole unmount --lazy \"$MOUNT\"")
      let folder = keyhole.world.runtime + "/keyhole"
      #expect(
        try holds {
          try System.names(folder).allSatisfy { !$0.hasPrefix("\(program.process).") }
        })
      for file in files {
        try file.write(Array("7\n".utf8), at: 0)
        try file.close()
      }
      #expect(try program.waitForEnd(until: Deadline(in: .seconds(20))) == 0)
      try keyhole.world.check(
        "keyhole get defaults/s/k; keyhole get keychain/generic/s/a/value", prints: "7\n7\nd")
    }
  }

  /// A mount that is made at the same path later stays when the first one ends.
  @Test func nextMountAtThePathStays() async throws {
    try await withKeyhole { keyhole in
      let file = { try OpenFile(keyhole / ".keyhole/status", O_RDONLY) }
      let (program, open) = (try keyhole.program, try file())
      try keyhole.world.check("keyhole unmount --lazy \"$MOUNT\"; keyhole mount -o keychain=vault \"$MOUNT\"")
      defer { _ = try? keyhole.world.sh("keyhole unmount --lazy \"$MOUNT\"") }
      try open.close()
      #expect(try program.waitForEnd(until: Deadline(in: .seconds(20))) == 0)
      try keyhole.check("ls", prints: "defaults\nkeychain\ntemplates\nviews\n")
    }
  }
}

extension String {
  fileprivate func components(of text: String) -> Int { ranges(of: text).count }
}
