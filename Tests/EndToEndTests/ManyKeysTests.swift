import Glibc
import Testing

/// Suites of thousands of keys.
@Suite(.timeLimit(.minutes(3))) struct ManyKeysTests {
  private func withKeys(_ count: Int, _ body: (MountedKeyhole, _ names: Set<String>) throws -> Void)
    async throws
  {
    try await withKeyhole("keychain=none") { keyhole in
      let names = Set((0..<count).map { "key\($0)" })
      let entries = names.map { "<key>\($0)</key><string>a value</string>" }.joined(separator: "\n")
      try System.write(
        keyhole.suiteFile("s"),
        "<?xml version=\"1.0\"?><plist version=\"1.0\"><dict>\(entries)</dict></plist>")
      try body(keyhole, names)
    }
  }

  /// rm reads the directory in parts, and removes what it has read before it reads on.
  @Test func removingThemAllRemovesThemAll() async throws {
    try await withKeys(3_000) { keyhole, _ in
      let output = try keyhole.sh("rm -r defaults/s; ls defaults", within: .seconds(150))
      #expect(output == Output(status: 0, bytes: [], error: ""))
      // The version before the last one stays beside a suite until the disk has the last one.
      var names: [String] = []
      let isEmpty = try holds {
        names = try System.names(keyhole.world.config)
        return names.isEmpty
      }
      #expect(isEmpty, "\(names)")
    }
  }

  /// A command that opens a suite itself reads all of it for one key.
  @Test func getAndSetOfOneLeaveTheSuiteToTheMount() async throws {
    try await withKeys(1_000) { keyhole, _ in
      let output = try keyhole.sh(
        """
        traced() { strace -f -qq -e trace=openat -o $OUT/calls keyhole "$@"; grep -c /s.plist $OUT/calls; }
        traced get defaults/s/key1; traced set defaults/s/key1 other; printf 'third\n' | traced set defaults/s/key2
        cat defaults/s/key1 defaults/s/key2; keyhole get defaults/s/key2
        traced set defaults/s/new fourth >&2; cat defaults/s/new
        """)
      #expect(output.text == "a value\n0\n0\n0\nother\nthird\nthird\nfourth\n", "\(output)")
    }
  }

  /// The folder below a mount that has ended is no mount.
  @Test func setWritesNothingIntoTheFolderBelowAMount() async throws {
    try await withKeys(10) { keyhole, _ in
      let output = try keyhole.sh(
        """
        cd /; keyhole unmount "$MOUNT"; mkdir -p "$MOUNT/defaults/s"; echo below > "$MOUNT/defaults/s/key1"
        keyhole set defaults/s/key1 other; cat "$MOUNT/defaults/s/key1"; rm -r "$MOUNT/defaults"
        keyhole get defaults/s/key1
        """)
      #expect(output.text == "below\nother\n", "\(output)")
    }
  }

  /// The memory that large values took is given back when they are gone.
  @Test func largeValuesLeaveNoMemoryBehind() async throws {
    try await withKeyhole("keychain=none") { keyhole in
      let process = try #require(try keyhole.sh("jq .pid .keyhole/status").lines.first)
      func anonymous() throws -> Int {
        let line = try keyhole.sh("grep RssAnon /proc/\(process)/status").text
        return try #require(Int(line.filter(\.isNumber))) * 1024
      }
      let before = try anonymous()
      try keyhole.check(
        """
        for suite in 1 2 3 4; do
          mkdir defaults/s$suite
          for key in 1 2 3 4 5; do head -c 1500000 /dev/zero | tr '\\0' x > defaults/s$suite/k$key & done
        done
        wait
        rm -r defaults/s?
        """)
      // Half of what was stored. It kept four times that.
      #expect(try anonymous() - before < 15_000_000)
    }
  }

  /// Keys that exist all the time are listed once, whichever others come and go while the directory is read.
  @Test func listingThemWhileOthersComeAndGoMissesNone() async throws {
    try await withKeys(10_000) { keyhole, names in
      try keyhole.check(
        "ls defaults/s | wc -l; ls defaults/s | sort | uniq -d; find defaults -type f | wc -l",
        prints: "\(names.count)\n\(names.count)\n")
      let other = try keyhole.launch(
        ["/bin/bash", "-c", "while :; do echo 1 > defaults/s/other; rm defaults/s/other; done"])
      defer { other.kill() }
      for _ in 0..<5 {
        let listed = try System.listing(keyhole / "defaults/s").map(\.name).filter { $0 != "other" }
        #expect(listed.count == names.count && Set(listed) == names)
      }
    }
  }
}
