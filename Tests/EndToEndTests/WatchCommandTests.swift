import Glibc
import Testing

/// Section 10: `keyhole watch`.
@Suite(.timeLimit(.minutes(2))) struct WatchCommandTests {
  /// Starts a watch on stores that are not mounted, and returns when it reports a change.
  private static func watch(_ world: World, _ arguments: String) throws -> Watcher {
    let watcher = Watcher(try world.launch("exec keyhole watch \(arguments) 2>&1"))
    var number = 0
    while true {
      number += 1
      try world.check("keyhole set defaults/probe/count \(number)")
      if (try? watcher.program.line(within: .milliseconds(100))) != nil { return watcher }
    }
  }

  @Test func linesForPeopleAndForProgramsSayTheSame() async throws {
    try await withWorld { world in
      let (people, programs) = (try Self.watch(world, ""), try Self.watch(world, "--json"))
      // Each is waited for: of two quick changes of a key the second one is seen only.
      let steps = [
        ("keyhole set defaults/s/k 1", "created", "defaults/s/k"),
        ("keyhole set defaults/s/k 2", "modified", "defaults/s/k"),
        ("keyhole rm defaults/s/k", "deleted", "defaults/s/k"),
        ("echo x | keyhole set keychain/generic/svc/acc/value", "created", "keychain/generic/svc/acc/value"),
        ("keyhole set defaults/end/e 1", "created", "defaults/end/e"),
      ]
      for (command, kind, path) in steps {
        try world.check(command)
        for watcher in [people, programs] { _ = try watcher.until(kind, path) }
      }
      let expected = [
        ("created", "defaults/s"), ("created", "defaults/s/k"), ("modified", "defaults/s/k"),
        ("deleted", "defaults/s/k"), ("created", "keychain/generic/svc/acc/value"),
        ("created", "defaults/end"), ("created", "defaults/end/e"),
      ]
      let lines = people.lines.filter { !$0.contains("probe") }
      #expect(
        Set(lines.map { $0.split(separator: "\t").dropFirst().joined(separator: " ") })
          == Set(expected.map { "\($0) \($1)" }))
      let objects = programs.lines.filter { !$0.contains("probe") }
      for (kind, path) in expected {
        #expect(
          objects.filter { $0.contains(#""kind":"\#(kind)","path":"\#(path)","origin":"external"}"#) }.count
            == 1, "\(objects)")
      }
    }
  }

  @Test func shortNameIsAnItem() async throws {
    try await withWorld { world in
      try world.check(
        """
        keyhole set keychain/generic/svc/acc <<< x; keyhole set keychain/generic/svc/other <<< x
        """)
      let watcher = Watcher(try world.launch("exec keyhole watch svc/acc 2>&1"))
      var (number, line) = (0, String?.none)
      while line == nil {
        number += 1
        for account in ["other", "acc"] {
          try world.check("keyhole set keychain/generic/svc/\(account) <<< \(number)")
        }
        line = (try? watcher.program.line(within: .milliseconds(100))) ?? nil
      }
      #expect(line?.contains("keychain/generic/svc/acc") == true, "\(line ?? "")")
      try world.fails("keyhole watch nothing/there", status: 3)
    }
  }

  @Test func pathLeavesTheRestOut() async throws {
    try await withWorld { world in
      let watcher = Watcher(try world.launch("exec keyhole watch defaults/s 2>&1"))
      var number = 0
      repeat {
        number += 1
        try world.check("keyhole set defaults/other/k \(number); keyhole set defaults/s/k \(number)")
      } while (try? watcher.program.line(within: .milliseconds(100))) == nil
      try world.check(
        "keyhole set defaults/other/k 0; keyhole set defaults/sister/k 0; keyhole set defaults/s/end 1")
      #expect(try watcher.until("defaults/s/end").filter { !$0.contains("defaults/s/") } == [])
    }
  }

  @Test func commandRunsForEachChange() async throws {
    try await withWorld { world in
      let watcher = try Self.watch(world, "--exec 'echo \"$KEYHOLE_KIND $KEYHOLE_PATH\"' defaults")
      try world.check("keyhole set defaults/s/k 1")
      _ = try watcher.until("created defaults/s/k")
      // Removed before it was looked at, it would not have been there.
      try world.check("rm \"$CONFIG/s.plist\"")
      _ = try watcher.until("deleted defaults/s")
    }
  }

  /// Folders that are made later are watched all the same.
  @Test func watchingMakesNoFolders() async throws {
    try await withWorld { world in
      try world.check("rmdir \"$CONFIG\" \"$DATA\"")
      let watcher = try Self.watch(world, "")
      // The setting that shows that the watch is there has made the folder of settings, and no other.
      try world.check("! test -e \"$DATA\"")
      try world.check("echo x | keyhole set keychain/generic/s/a/value")
      _ = try watcher.until("created", "keychain/generic/s/a/value")
    }
  }

  @Test func folderMayComeLaterOrMove() async throws {
    try await withWorld { world in
      try world.check("rmdir \"$CONFIG\"")
      let watcher = try Self.watch(world, "--json defaults")
      try world.check("keyhole set defaults/s/k 1")
      _ = try watcher.until("created", "defaults/s/k")
      try world.check("mv \"$CONFIG\" \"$OUT/away\"")
      _ = try watcher.until("deleted", "\"defaults/s\"")
      try world.check("mv \"$OUT/away\" \"$CONFIG\"")
      _ = try watcher.until("created", "defaults/s/k")
      try world.check("keyhole set defaults/s/k 2")
      _ = try watcher.until("modified", "defaults/s/k")
    }
  }

  /// Where the kernel has no watch left, it says so and looks once a second.
  @Test(.enabled(if: Privileges.isRoot, "needs root")) func limitOfWatchesIsNoSilenceAsRoot() async throws {
    try await withWorld { world in
      let limited = "exec unshare -Urm sh -c 'echo 0 > /proc/sys/user/max_inotify_instances; exec \"$@\"' sh"
      let watcher = Watcher(try world.launch("\(limited) keyhole watch defaults 2>&1"))
      try watcher.until { $0.contains("once a second") && $0.contains("max_user_instances") }
      var number = 0
      repeat {
        number += 1
        try world.check("keyhole set defaults/s/k \(number)")
      } while (try? watcher.program.line(within: .seconds(3))) == nil
      let status = try world.sh(
        "\(limited) sh -c 'keyhole mount \"$MOUNT\" && cat \"$MOUNT/.keyhole/status\"; keyhole unmount \"$MOUNT\"'"
      )
      #expect(status.text.contains("looked at once a second only"), "\(status)")
    }
  }
}
