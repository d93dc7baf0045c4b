import EtcdHarness
import Glibc
import Testing

/// Swift programs with the wrappers and the settings of a cluster, which they reach through the mount's process.
@Suite(.timeLimit(.minutes(2))) struct ClusterWrapperTests {
  /// Both machines belong to the store and have mounted it; the setting is `first`.
  private static func withTwoMounts(
    _ body: (MountedKeyhole, MountedKeyhole, ClusterMachines) throws -> Void
  ) async throws {
    try await withTwoClusterMounts { machines, one, other in
      try one.world.check("keyhole set defaults/app/text first")
      try other.shows("first\n", at: "defaults/app/text")
      try body(one, other, machines)
    }
  }

  @Test func changesOfEachReachTheOther() async throws {
    try await Self.withTwoMounts { one, other, _ in
      let watcher = Watcher(try other.world.launch("exec WrapperProgram follow app text last"))
      _ = try watcher.until("first")
      // By the command, a program with the wrappers and the file, on another machine and on this one.
      try one.world.check("keyhole set defaults/app/text second")
      _ = try watcher.until("second")
      try one.world.check("WrapperProgram set app text third")
      _ = try watcher.until("third")
      try other.check("rm defaults/app/text")
      _ = try watcher.until("nil")
      // A suite that is not there is made.
      try other.world.check("WrapperProgram set new text x")
      try one.shows("x\n", at: "defaults/new/text")
      try other.check("echo last > defaults/app/text")
      _ = try watcher.until("last")
      #expect(watcher.lines == ["first", "second", "third", "nil", "last"])
      for world in [one.world, other.world] {
        try world.check("ls \"$XDG_CONFIG_HOME\" | grep -c plist || true", prints: "0\n")
      }
    }
  }

  /// A program that runs before the mount, through a lock and across the mount's end: it never takes this machine's own settings for
  /// the cluster's again.
  @Test func programOutlivesMounts() async throws {
    try await Self.withTwoMounts { one, other, machines in
      let world = other.world
      try world.check("keyhole unmount; WrapperProgram set app text own")
      let watcher = Watcher(try world.launch("exec WrapperProgram follow app text last"))
      _ = try watcher.until("own")
      try other.start()
      try machines.unlock(other)
      _ = try watcher.until("first")
      try world.check("keyhole unmount; keyhole set defaults/app/text of-this-machine")
      try one.world.check("keyhole set defaults/app/text second")
      try other.start()
      try machines.unlock(other)
      _ = try watcher.until("second")
      try one.world.check("keyhole set defaults/app/text last")
      _ = try watcher.until("last")
      #expect(watcher.lines == ["own", "first", "second", "last"])
    }
  }

  /// Behind a mount whose process was killed a program changes nothing, neither there nor in this machine's own files.
  @Test func deadMountIsNotTakenForNone() async throws {
    try await Self.withTwoMounts { one, other, _ in
      try other.world.check(
        "kill -9 $(jq .pid \"$MOUNT/.keyhole/status\"); while stat \"$MOUNT\" >/dev/null 2>&1; do :; done")
      let set = try other.world.sh("WrapperProgram set app text lost")
      #expect(set.error.contains("app"), "\(set)")
      try other.world.check("ls \"$XDG_CONFIG_HOME\" | grep -c plist || true", prints: "0\n")
      try one.shows("first\n", at: "defaults/app/text")
    }
  }
}
