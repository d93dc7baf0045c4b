import Testing

/// Slips of the hand: the command refuses them, names the right command, and changes nothing.
@Suite(.timeLimit(.minutes(1))) struct CommandRefusalTests {
  private func refuses(
    _ world: World, _ script: String, _ reason: String, status: Int32 = 1,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let output = try world.sh(script)
    #expect(
      output.status == status && output.bytes.isEmpty, "\(script): \(output)", sourceLocation: sourceLocation)
    #expect(output.error.contains(reason), "\(script): \(output.error)", sourceLocation: sourceLocation)
    // A usage error has a second line, the usage.
    let lines = output.error.split(separator: "\n")
    #expect(
      lines.count == 1 || status == 2 && lines.count == 2 && lines[1].hasPrefix("Usage: "),
      sourceLocation: sourceLocation)
  }

  @Test func namesOfScratchAreNotSet() async throws {
    try await withWorld { world in
      try refuses(
        world, "echo s | keyhole set keychain/generic/github/me/token", "keychain/generic/github/me/value")
      try refuses(world, "echo s | keyhole set keychain/other/label/token", "keychain/other/label/value")
      try refuses(world, "keyhole set defaults/app/.hidden 1", "defaults/app/%2Ehidden")
      try refuses(world, "keyhole set defaults/app/.. 1", "defaults/app/%2E.")
      for name in ["notes~", "4913", "x.swp", "#x#"] {
        try refuses(world, "keyhole set 'defaults/app/\(name)' precious", "another name")
      }
      // Not even the folders on the way were made.
      try world.check(
        "keyhole ls defaults; keyhole ls keychain/generic; keyhole set defaults/app/%2E. 1; keyhole get defaults/app/%2E.",
        prints: "1\n")
    }
  }

  /// A key of such a name that a program has stored is an ordinary key.
  @Test func storedKeysOfScratchNamesAreSet() async throws {
    try await withWorld { world in
      try System.write(
        world.config + "/app.plist",
        "<plist version=\"1.0\"><dict><key>notes~</key><string>old</string></dict></plist>\n")
      try world.check("keyhole set defaults/app/notes~ new; keyhole get defaults/app/notes~", prints: "new\n")
    }
  }

  @Test func topOfTheTreeIsNotEmptied() async throws {
    try await withWorld { world in
      try world.check("keyhole set defaults/app/key 1; echo s | keyhole set keychain/generic/s/a/value")
      for path in ["", "/", ".", "//"] {
        try refuses(world, "keyhole rm -r --yes '\(path)'", "nothing was removed")
      }
      try world.check(
        "keyhole get defaults/app/key; keyhole get keychain/generic/s/a/value; echo", prints: "1\ns\n")
    }
  }

  /// The path of a folder of the tree may be that of an unset variable in a script: `-f` is not enough for it.
  @Test func severalThingsAreRemovedWithAYesOnly() async throws {
    try await withWorld { world in
      try world.check(
        """
        keyhole set defaults/app/key 1; keyhole set defaults/app/other 1
        echo s | keyhole set keychain/generic/s/a; echo s | keyhole set keychain/generic/s/b
        """)
      for command in [
        "keyhole rm -r defaults/app", "keyhole rm -rf defaults", "keyhole rm -r keychain/generic",
      ] {
        try world.fails(command, status: 2)
      }
      try world.check(
        "keyhole find a; keyhole find '?'",
        prints: """
          defaults/app
          keychain/generic/s/a
          keychain/generic/s
          keychain/generic/s/a
          keychain/generic/s/b

          """)
      try world.check(
        "keyhole rm -r --yes keychain; keyhole ls keychain; keyhole ls keychain/generic",
        prints: "generic\ninternet\nother\n")
      try world.check("keyhole rm -r keychain/internet; keyhole rm -rf defaults/app; keyhole ls defaults")
      try world.check("keyhole rm -f defaults/app")
    }
  }

  @Test func argumentsThatAreNotUnicodeAreRefused() async throws {
    try await withWorld { world in
      try refuses(world, "keyhole set $'defaults/app/a\\xff' 1", "argument 2 is not UTF-8", status: 2)
      try refuses(world, "keyhole set defaults/app/a $'b\\xff'", "argument 3 is not UTF-8", status: 2)
      try world.check("keyhole ls defaults")
    }
  }
}
