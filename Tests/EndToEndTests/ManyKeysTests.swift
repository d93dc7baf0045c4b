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
