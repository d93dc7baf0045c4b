import Glibc
import Testing

/// Suites of 10,000 keys.
@Suite(.timeLimit(.minutes(3))) struct ManyKeysTests {
  static let count = 10_000
  static let names = Set((0..<count).map { "key\($0)" })

  private func withManyKeys(_ body: (MountedKeyhole) throws -> Void) async throws {
    try await withKeyhole("keychain=none") { keyhole in
      let entries = Self.names.map { "<key>\($0)</key><string>a value</string>" }.joined(separator: "\n")
      try System.write(
        keyhole.suiteFile("s"),
        "<?xml version=\"1.0\"?><plist version=\"1.0\"><dict>\(entries)</dict></plist>")
      try body(keyhole)
    }
  }

  /// rm reads the directory in parts, and removes what it has read before it reads on.
  @Test func removingThemAllRemovesThemAll() async throws {
    try await withManyKeys { keyhole in
      let output = try keyhole.sh("rm -r defaults/s; ls defaults", within: .seconds(150))
      #expect(output == Output(status: 0, bytes: [], error: ""))
      // The version before the last one stays beside a suite until the disk has the last one.
      var names: [String] = []
      let isEmpty = try holds(within: .seconds(10)) {
        names = try System.names(keyhole.world.config)
        return names.isEmpty
      }
      #expect(isEmpty, "\(names)")
    }
  }

  /// Keys that exist all the time are listed once, whichever others come and go while the directory is read.
  @Test func listingThemWhileOthersComeAndGoMissesNone() async throws {
    try await withManyKeys { keyhole in
      let other = try keyhole.launch(
        ["/bin/bash", "-c", "while :; do echo 1 > defaults/s/other; rm defaults/s/other; done"])
      defer { other.kill() }
      for _ in 0..<5 {
        let listed = try System.listing(keyhole / "defaults/s").map(\.name).filter { $0 != "other" }
        #expect(listed.count == Self.count && Set(listed) == Self.names)
      }
    }
  }
}
