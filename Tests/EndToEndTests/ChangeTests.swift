import Glibc
import KeyringHarness
import TestSupport
import Testing

/// Section 9: watchers get each change once, whichever interface made it.
@Suite(.timeLimit(.minutes(3))) struct ChangeTests {
  /// A way for a value into the stores.
  struct Road: Sendable, CustomStringConvertible {
    let description: String
    let path: String
    var origin = "external"
    /// On the desktop's keyring; else in the vault.
    var isKeyring = false
    /// Sets the value at the path, without this mount unless that is the road.
    let set: @Sendable (MountedKeyhole, _ value: String) throws -> Void
  }

  static let key = "defaults/s/k"
  /// With no account, as the wrappers have it.
  static let item = "keychain/generic/svc/%"
  static let secret = item + "/value"

  static let roads: [Road] = [
    Road(description: "the mount", path: key, origin: "mount") { keyhole, value in
      try keyhole.check("echo \(value) > \(key)")
    },
    Road(description: "the mount, a secret", path: secret, origin: "mount") { keyhole, value in
      try keyhole.check("echo \(value) > \(secret)")
    },
    Road(description: "keyhole set", path: key) { keyhole, value in
      try keyhole.world.check("keyhole set \(key) \(value)")
    },
    Road(description: "keyhole set of a secret, another process of the vault", path: secret) {
      keyhole, value in
      try keyhole.world.check("echo \(value) | keyhole set \(secret)")
    },
    Road(description: "a Foundation program", path: key) { keyhole, value in
      try keyhole.world.check("FoundationProgram set s k string \(value)")
    },
    Road(description: "an editor of the property list, in place", path: key) { keyhole, value in
      try System.write(keyhole.suiteFile("s"), propertyList(value))
    },
    Road(description: "an editor of the property list, by rename", path: key) { keyhole, value in
      try keyhole.replaceSuite("s", with: Array(propertyList(value).utf8))
    },
    Road(description: "a second mount", path: key) { keyhole, value in
      try keyhole.world.check("echo \(value) > \"$OUT/second/\(key)\"")
    },
    Road(description: "a second mount, a secret", path: secret) { keyhole, value in
      try keyhole.world.check("echo \(value) > \"$OUT/second/\(secret)\"")
    },
    Road(description: "a wrapper", path: key) { keyhole, value in
      try keyhole.world.check("WrapperProgram set s k \(value)")
    },
    Road(description: "a wrapper, a secret", path: secret) { keyhole, value in
      try keyhole.world.check("WrapperProgram secret svc \(value)")
    },
    Road(description: "the mount, on a keyring", path: secret, origin: "mount", isKeyring: true) {
      keyhole, value in
      try keyhole.check("echo \(value) > \(secret)")
    },
    Road(description: "secret-tool, by the Secret Service's signals", path: secret, isKeyring: true) {
      keyhole, value in
      try keyhole.world.check("printf \(value) | secret-tool store --label=svc service svc account ''")
    },
    Road(description: "keyhole set on a keyring", path: secret, isKeyring: true) { keyhole, value in
      try keyhole.world.check("echo \(value) | keyhole set \(secret)")
    },
    Road(description: "a second mount of a keyring", path: secret, isKeyring: true) { keyhole, value in
      try keyhole.world.check("echo \(value) > \"$OUT/second/\(secret)\"")
    },
    Road(description: "a wrapper on a keyring", path: secret, isKeyring: true) { keyhole, value in
      try keyhole.world.check("WrapperProgram secret svc \(value)")
    },
  ]

  private static func propertyList(_ value: String) -> String {
    PropertyListText.xml("<dict><key>k</key><string>\(value)</string><key>o</key><string>x</string></dict>")
  }

  @Test(arguments: roads) func everyRoadReachesEveryone(_ road: Road) async throws {
    let bus = road.isKeyring ? try PrivateBus() : nil
    try bus?.startKeyring()
    let environment = bus.map { ["DBUS_SESSION_BUS_ADDRESS=\($0.address)"] } ?? []
    let keychain = "keychain=\(road.isKeyring ? "secret-service" : "vault")"
    try await withKeyhole(keychain, environment: environment) { keyhole in
      try keyhole.check(
        """
        mkdir defaults/s defaults/probe; echo one > \(Self.key); echo x > defaults/s/o
        mkdir -p \(Self.item); echo one > \(Self.secret)
        """)
      try withSecondMount(keyhole, keychain) {
        let wrapper = try Self.wrapper(keyhole, road)
        let inotify = try keyhole.inotify()
        let events = try keyhole.events()
        let watch = try keyhole.watch()
        _ = try events.until("probe/mark", "deleted")
        let watchers = [inotify, events, watch]
        let starts = watchers.map(\.lines.count)
        for value in ["two", "two", "three"] {
          let isNews = try !System.text(keyhole / road.path).hasPrefix(value)
          try road.set(keyhole, value)
          let seen = try holds {
            try System.text(keyhole / road.path).hasPrefix(value)
          }
          #expect(seen)
          // Changes that follow each other sooner than a watcher reads them may be one.
          guard isNews else { continue }
          _ = try inotify.until("CLOSE_WRITE", road.path)
          for watcher in [events, watch] { _ = try watcher.until("modified", road.path) }
          _ = try wrapper.until(value)
        }
        // Behind it on the same way, so that what would come twice has come.
        try keyhole.world.check(
          "keyhole set defaults/probe/end 1; echo 1 | keyhole set keychain/generic/svc/end/value")
        _ = try (inotify.until("CREATE", "probe/end"), inotify.until("CREATE,ISDIR", "svc/end"))
        for watcher in [events, watch] {
          _ = try (watcher.until("created", "probe/end"), watcher.until("created", "svc/end"))
        }
        #expect(wrapper.lines == ["one", "two", "three"])
        let told = zip(watchers, starts).map { watcher, start in
          watcher.lines[start...].filter { $0.contains(road.path) }
        }
        let once = ["MODIFY", "CLOSE_WRITE,CLOSE"]
        // For a write through the mount itself the kernel raises the events.
        let expected = road.origin == "mount" ? ["MODIFY"] + once : once
        let times = road.origin == "mount" ? 3 : 2
        // inotify(7) joins equal events that follow each other before they are read.
        let lines = (0..<times).flatMap { _ in expected.map { "\($0) \(keyhole / road.path)" } }
        #expect(Self.joined(told[0]) == Self.joined(lines))
        for (lines, origin) in [(told[1], road.origin), (told[2], "external")] {
          #expect(lines.count == 2, "\(lines)")
          for line in lines {
            #expect(
              line.contains("\"kind\":\"modified\",\"path\":\"\(road.path)\",\"origin\":\"\(origin)\"}"))
          }
        }
      }
    }
  }

  /// Without those that are equal to the one before.
  private static func joined(_ lines: some Sequence<String>) -> [String] {
    lines.reduce(into: []) { joined, line in if joined.last != line { joined.append(line) } }
  }

  /// A program that uses the property wrappers, once it hears.
  private static func wrapper(_ keyhole: MountedKeyhole, _ road: Road) throws -> Watcher {
    let arguments = road.path == key ? "follow s k three" : "reveal svc three"
    let watcher = Watcher(try keyhole.world.launch("exec WrapperProgram \(arguments)"))
    _ = try watcher.until("one")
    return watcher
  }

  private func withSecondMount(
    _ keyhole: MountedKeyhole, _ keychain: String, _ body: () throws -> Void
  ) throws {
    try keyhole.world.check("mkdir -m 700 \"$OUT/second\"; keyhole mount -o \(keychain) \"$OUT/second\"")
    defer { _ = try? keyhole.world.sh("keyhole unmount --lazy \"$OUT/second\"") }
    try body()
  }

  /// The last event of each key comes when its last value can be read.
  @Test func stormLosesNothing() async throws {
    try await withKeyhole { keyhole in
      let suites = (0..<4).map { "storm\($0)" }
      try keyhole.check("mkdir defaults/probe")
      for suite in suites { try keyhole.check("mkdir defaults/\(suite); echo 0 > defaults/\(suite)/n") }
      let watchers = [try keyhole.inotify(), try keyhole.events(), try keyhole.watch()]
      let count = 2_500
      let storm = try suites.map { suite in
        try keyhole.world.launch("exec FoundationProgram count \(suite) n \(count)")
      }
      for watcher in watchers {
        var picture: [String: String] = [:]
        try watcher.until(within: .seconds(60)) { line in
          for suite in suites where line.contains("defaults/\(suite)/n") {
            picture[suite] = try System.text(keyhole / "defaults/\(suite)/n")
          }
          return suites.allSatisfy { picture[$0] == "\(count)\n" }
        }
      }
      for program in storm { #expect(try program.waitForEnd(until: Deadline(in: .seconds(60))) == 0) }
    }
  }

  /// A save of an editor is one change, whichever way it saves.
  @Test func saveIsOneLine() async throws {
    let saves = [
      "echo 2 > k", "printf 3 > .k.swp; mv .k.swp k", "mv k k~; echo 4 > k; rm k~", "sed -i s/4/5/ k",
    ]
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir defaults/s defaults/probe; echo 1 > defaults/s/k")
      let events = try keyhole.events()
      _ = try events.until("defaults/s/k")
      for (number, save) in saves.enumerated() {
        try keyhole.check("cd defaults/s; \(save)")
        try System.write(keyhole / "defaults/probe/mark\(number)", "x")
        let lines = try events.until("probe/mark\(number)")
        #expect(
          lines.map { $0.contains(#""kind":"modified","path":"defaults/s/k","origin":"mount""#) } == [true],
          "\(save): \(lines)")
      }
    }
  }

  @Test func equalSecretChangesNothing() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir -p \(Self.item); echo one > \(Self.secret); touch -d @1000 \(Self.secret)")
      let events = try keyhole.events()
      _ = try events.until("attributes")
      try keyhole.check("echo one > \(Self.secret); stat -c %Y \(Self.secret)", prints: "1000\n")
      try keyhole.check("printf one >> \(Self.secret); sed -i s/oneone/two/ \(Self.secret)")
      let lines = try events.until("modified") + events.until("modified")
      #expect(lines == [])
    }
  }

  /// A command ends when the mount shows its change, so the next command of a script sees it.
  @Test func theNextCommandSeesTheChange() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        mkdir defaults/a; cd keychain/generic
        for n in $(seq 1 12); do
          printf $n | keyhole set keychain/generic/s/$n; cat s/$n/value > $OUT/seen && keyhole mv keychain/generic/s/$n keychain/generic/t/$n
          cat t/$n/value >> $OUT/seen; [ ! -e s/$n ] || echo "s/$n is still there"
          printf longer-$n | keyhole set keychain/generic/t/$n; wc -c < t/$n/value >> $OUT/seen
          keyhole rm --yes keychain/generic/t/$n; ! cat t/$n/value 2> /dev/null; keyhole undo -q keychain/generic/t/$n; cat t/$n/value >> $OUT/seen
          printf x | keyhole set keychain/generic/w/A$n; keyhole view v$n --format env --from keychain/generic/w/A$n > /dev/null; cat "$MOUNT"/views/v$n > /dev/null
          keyhole rm -r --yes keychain/generic/w; ! ls w 2> /dev/null
          keyhole set defaults/a/k "x $(seq -s ' ' $n)"; stat -c %s "$MOUNT"/defaults/a/k > $OUT/size; wc -c < "$MOUNT"/defaults/a/k | cmp - $OUT/size
        done
        """, within: .seconds(90))
    }
  }
}
