import Glibc
import Testing

/// `keyhole set` that knows of no mount, so that it stores settings as any other program does.
private let setElsewhere = "XDG_RUNTIME_DIR=\"$OUT/elsewhere\" keyhole set"

/// Section 9: what others change raises on the mount the events that a local change would.
@Suite(.timeLimit(.minutes(2))) struct InotifyTests {
  /// Events below the mount, until one of a mark that is set behind them.
  private static func told(_ inotify: Watcher, _ keyhole: MountedKeyhole) throws -> [String] {
    try keyhole.world.check("keyhole set defaults/mark/\(inotify.lines.count) 1")
    let lines = try inotify.until("CREATE ", "/mark/\(inotify.lines.count)")
    return lines.map { $0.replacing(keyhole.mount + "/", with: "") }
  }

  private static func prepare(_ keyhole: MountedKeyhole) throws -> Watcher {
    try keyhole.check(
      """
      mkdir defaults/s defaults/mark; echo 1 > defaults/s/k
      mkdir -p keychain/generic/svc/acc keychain/generic/svc/stays
      echo one > keychain/generic/svc/acc/value; echo one > keychain/generic/svc/stays/value
      """)
    return try keyhole.inotify()
  }

  @Test func oneKeyOfAThousandIsOneEvent() async throws {
    try await withKeyhole { keyhole in
      func list(_ changed: String) -> String {
        (0..<1_000).map { "<key>k\($0)</key><string>\($0 == 500 ? changed : "x")</string>" }.joined()
      }
      try keyhole.writeSuite("many", list("x"))
      let inotify = try Self.prepare(keyhole)
      // The event of the new suite has come.
      _ = try Self.told(inotify, keyhole)
      try keyhole.writeSuite("many", list("y"))
      let path = "defaults/many/k500"
      let told = try Self.told(inotify, keyhole)
      #expect(told == ["MODIFY \(path)", "CLOSE_WRITE,CLOSE \(path)"])
      try keyhole.writeSuite("many", list("y"))
      let toldOfEqual = try Self.told(inotify, keyhole)
      #expect(toldOfEqual == [])
    }
  }

  static let changes: [(script: String, events: [String])] = [
    ("\(setElsewhere) defaults/s/new 1", ["CREATE defaults/s/new"]),
    ("keyhole rm defaults/s/k", ["DELETE defaults/s/k"]),
    ("\(setElsewhere) defaults/s/k 1", []),
    ("echo one | keyhole set keychain/generic/svc/acc/value", []),
    (
      "keyhole attr keychain/generic/svc/acc comment x",
      [
        "ATTRIB,ISDIR keychain/generic/svc/acc", "ATTRIB,ISDIR keychain/generic/svc/acc/",
        "ATTRIB keychain/generic/svc/acc/value",
      ]
    ),
    (
      "keyhole rm -r keychain/generic/svc/acc",
      [
        "DELETE keychain/generic/svc/acc/value", "DELETE_SELF keychain/generic/svc/acc/",
        "DELETE,ISDIR keychain/generic/svc/acc",
      ]
    ),
    (
      "rm \"$CONFIG/s.plist\"", ["DELETE defaults/s/k", "DELETE_SELF defaults/s/", "DELETE,ISDIR defaults/s"]
    ),
    (
      "mv \"$CONFIG/s.plist\" \"$CONFIG/t.plist\"",
      [
        "DELETE defaults/s/k", "DELETE_SELF defaults/s/", "DELETE,ISDIR defaults/s",
        "CREATE,ISDIR defaults/t",
      ]
    ),
  ]

  @Test(arguments: changes.indices) func everyKindOfChangeRaisesItsEvents(row: Int) async throws {
    let (script, events) = Self.changes[row]
    try await withKeyhole { keyhole in
      let inotify = try Self.prepare(keyhole)
      try keyhole.world.check(script)
      // A watcher of the parent has yet to watch a new directory, so events inside it may come or not.
      let told = try Self.told(inotify, keyhole).filter { !$0.contains("defaults/t/") }
      #expect(Set(told) == Set(events) && told.count == events.count, "\(told)")
    }
  }

  @Test func outsideMoveOfAnItemIsADeletionAndACreation() async throws {
    try await withKeyhole { keyhole in
      let inotify = try Self.prepare(keyhole)
      try keyhole.world.check(
        """
        mkdir -m 700 "$OUT/second"; keyhole mount -o keychain=vault "$OUT/second"
        mv "$OUT/second/keychain/generic/svc/acc" "$OUT/second/keychain/generic/svc/new"
        keyhole unmount "$OUT/second"
        """)
      let told = try Self.told(inotify, keyhole)
      for event in ["DELETE,ISDIR keychain/generic/svc/acc", "CREATE,ISDIR keychain/generic/svc/new"] {
        #expect(told.filter { $0 == event }.count == 1, "\(told)")
      }
      try keyhole.check(
        "cat keychain/generic/svc/new/value; ls keychain/generic/svc", prints: "onenew\nstays\n")
    }
  }

  @Test func echoCanBeSwitchedOff() async throws {
    try await withKeyhole("echo=off") { keyhole in
      let inotify = try Self.prepare(keyhole)
      try keyhole.world.check("\(setElsewhere) defaults/s/k 2; \(setElsewhere) defaults/s/new 2")
      let seen = try holds {
        try System.text(keyhole / "defaults/s/new") == "2\n"
      }
      #expect(seen)
      try System.write(keyhole / "defaults/s/local", "3")
      #expect(try inotify.until("defaults/s/local") == [])
      try keyhole.check("grep '^  \"echo\"' .keyhole/status", prints: "  \"echo\": false,\n")
    }
  }

  @Test func programsThatWatchFilesWork() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir defaults/s; echo 1 > defaults/s/k; echo a > defaults/s/log")
      let entr = Watcher(
        try keyhole.world.launch(
          "echo \"$MOUNT/defaults/s/k\" | exec entr -n -p cat /_ 2>&1"))
      let tail = Watcher(try keyhole.world.launch("exec tail -n +1 -F \"$MOUNT/defaults/s/log\" 2>&1"))
      // The work of a path unit: wait for the file, then start something.
      let unit = Watcher(
        try keyhole.world.launch(
          """
          echo waiting
          while inotifywait -qq -e modify,close_write,create,delete,attrib "$MOUNT/defaults/s/k"; do
            cat "$MOUNT/defaults/s/k"
          done
          """))
      _ = try unit.until("waiting")
      _ = try tail.until("a")
      var number = 1
      func change() throws {
        number += 1
        try keyhole.world.check("\(setElsewhere) defaults/s/k \(number)")
      }
      // Neither entr nor the unit reports when it begins to watch.
      for watcher in [entr, unit] {
        while true {
          try change()
          if (try? watcher.program.line(within: .milliseconds(500))) != nil { break }
        }
      }
      try keyhole.world.check("printf 'a\\nb\\n' | \(setElsewhere) defaults/s/log")
      _ = try tail.until("b")
    }
  }

  /// A directory or file that is open can be removed and made again.
  @Test func openFilesDoNotMind() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir defaults/s; echo 1 > defaults/s/k")
      let inotify = try keyhole.inotify()
      let reader = try OpenFile(keyhole / "defaults/s/k", O_RDONLY)
      try keyhole.world.check("keyhole rm defaults/s/k")
      _ = try inotify.until("DELETE ", "/k")
      #expect(String(decoding: try reader.read(), as: UTF8.self) == "1\n")
      try keyhole.world.check("\(setElsewhere) defaults/s/k 22")
      _ = try inotify.until("CREATE ", "/k")
      try keyhole.check("cat defaults/s/k; stat -c '%s %h' defaults/s/k", prints: "22\n3 1\n")
      try reader.close()
    }
  }
}

/// Replays go through the mount as other operations do, and must not delay those.
@Suite(.timeLimit(.minutes(2))) struct EchoTests {
  private static func storm(_ keyhole: MountedKeyhole, _ count: Int = 1_000) throws -> [Program] {
    try (0..<2).map { try keyhole.world.launch("exec FoundationProgram count storm\($0) n \(count)") }
  }

  private static func prepare(_ keyhole: MountedKeyhole) throws -> Watcher {
    try keyhole.check(
      "mkdir defaults/storm0 defaults/storm1; echo 0 > defaults/storm0/n; echo 0 > defaults/storm1/n")
    return try keyhole.inotify()
  }

  private static func finish(_ storm: [Program]) throws {
    for program in storm { #expect(try program.waitForEnd(until: Deadline(in: .seconds(60))) == 0) }
  }

  @Test func mountCanBeTakenAwayMeanwhile() async throws {
    try await withKeyhole { keyhole in
      let inotify = try Self.prepare(keyhole)
      let storm = try Self.storm(keyhole)
      _ = try inotify.until("MODIFY")
      inotify.program.kill()
      _ = try inotify.program.waitForEnd(until: Deadline(in: .seconds(10)))
      let gone = holds { failure { try keyhole.unmount() } == nil }
      #expect(gone)
      try Self.finish(storm)
    }
  }

  @Test func killOfTheFileSystemLeavesNothingThatHangs() async throws {
    try await withKeyhole { keyhole in
      for _ in 0..<5 {
        let inotify = try Self.prepare(keyhole)
        let storm = try Self.storm(keyhole)
        _ = try inotify.until("MODIFY")
        try keyhole.kill()
        try Self.finish(storm)
        try keyhole.start()
        try keyhole.check("cat defaults/storm0/n defaults/storm1/n | wc -l; rm -r defaults/*", prints: "2\n")
      }
    }
  }

  @Test func stoppedWatchersHoldUpNobody() async throws {
    try await withKeyhole { keyhole in
      let inotify = try Self.prepare(keyhole)
      let events = try keyhole.events()
      _ = try events.until("storm1/n")
      inotify.program.signal(SIGSTOP)
      events.program.signal(SIGSTOP)
      let storm = try Self.storm(keyhole)
      try Self.finish(storm)
      let seen = try holds { try System.text(keyhole / "defaults/storm0/n") == "1000\n" }
      #expect(seen)
      try keyhole.check("echo 1 > defaults/storm0/m; cat defaults/storm0/m", prints: "1\n")
      events.program.signal(SIGCONT)
      inotify.program.signal(SIGCONT)
      _ = try inotify.until("storm0/m")
      _ = try events.until("storm0/m")
    }
  }

  /// Any process may end the replaying process; then another takes over. Four times, because after five it stays away.
  @Test func anotherProcessTakesOver() async throws {
    try await withKeyhole { keyhole in
      let inotify = try Self.prepare(keyhole)
      for value in 1...4 {
        try keyhole.world.check("\(setElsewhere) defaults/storm0/n \(value)")
        _ = try inotify.until("CLOSE_WRITE", "storm0/n")
        let children = try System.text("/proc/\(keyhole.process)/task/\(keyhole.process)/children")
        let threads = try System.names("/proc/\(keyhole.process)/task")
        let all =
          children
          + threads.map { (try? System.text("/proc/\(keyhole.process)/task/\($0)/children")) ?? "" }.joined()
        let process = try #require(all.split(separator: " ").first.flatMap { pid_t($0) })
        #expect(Glibc.kill(process, SIGKILL) == 0)
        #expect(holds { Glibc.kill(process, 0) != 0 })
      }
    }
  }

  /// The same calls by others are their own changes: they go to the store.
  @Test func nobodyElseIsTakenForAnEcho() async throws {
    try await withKeyhole { keyhole in
      let inotify = try Self.prepare(keyhole)
      // A suite of its own: Foundation's program takes no heed of what others write to its own.
      try System.mkdir(keyhole / "defaults/own")
      let storm = try Self.storm(keyhole)
      _ = try inotify.until("MODIFY")
      for number in 0..<50 {
        let path = keyhole / "defaults/own/k\(number)"
        try System.mknod(path, kind: S_IFREG)
        #expect(System.exists(path))
        try System.setModified(path, seconds: 1_000)
        #expect(try System.status(path).st_mtim.tv_sec == 1_000)
        try System.unlink(path)
        #expect(!System.exists(path))
      }
      try Self.finish(storm)
    }
  }
}
