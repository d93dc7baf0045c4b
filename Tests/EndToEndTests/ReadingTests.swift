import Testing

/// Reading makes nothing: no folder, no vault, no key file.
@Suite(.timeLimit(.minutes(1))) struct ReadingTests {
  private static let commands = [
    "ls", "ls defaults", "ls keychain", "ls keychain/generic", "ls -l defaults/s", "get defaults/s/k",
    "get keychain/generic/s/a/value", "status", "doctor", "attr defaults/s/k", "attr keychain/generic/s/a",
    "export --plain", "rm keychain/generic/s/a/value",
  ]

  @Test func homeThatIsNotThereStaysSo() async throws {
    try await withWorld { world in
      for command in Self.commands {
        _ = try world.sh("env -i PATH=\"$PATH\" HOME=\"$OUT/none\" keyhole \(command)")
        #expect(!System.exists(world.outside + "/none"), "\(command)")
      }
    }
  }

  @Test func freshHomeStaysFresh() async throws {
    try await withWorld { world in
      let list = "<plist version=\"1.0\"><dict><key>k</key><string>text</string></dict></plist>\n"
      try System.write(world.config + "/s.plist", list)
      for command in Self.commands {
        _ = try world.sh("keyhole \(command)")
        for folder in [world.home, world.data, world.state, world.runtime] {
          #expect(try System.names(folder) == [], "\(command)")
        }
      }
      #expect(try System.names(world.config) == ["s.plist"])
      try world.check("keyhole get defaults/s/k; keyhole ls keychain/generic", prints: "text\n")
      // The first item makes what it takes.
      try world.check(
        "printf secret | keyhole set keychain/generic/s/a/value; keyhole get keychain/generic/s/a/value",
        prints: "secret")
      #expect(try System.names(world.data + "/keyhole").contains("vault.db"))
    }
  }

  /// The times of keys that were read before there was a file for them are kept by the first commit.
  @Test func timesThatWereOnlyReadAreKept() async throws {
    try await withWorld { world in
      let list = "<plist version=\"1.0\"><dict><key>k</key><string>text</string></dict></plist>\n"
      try System.write(world.config + "/s.plist", list)
      try System.setModified(world.config + "/s.plist", seconds: 1_000_000_000)
      try world.check("keyhole set defaults/s/other 1")
      let line = try world.sh("keyhole ls -l defaults/s").text.split(separator: "\n").first {
        $0.hasSuffix("\tk")
      }
      #expect(line?.contains("2001-09-09T01:46:40Z") == true, "\(line ?? "")")
    }
  }
}
