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
    #expect(output.error.split(separator: "\n").count == 1, sourceLocation: sourceLocation)
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

  @Test func foldersOfTheTreeAreNotEmptied() async throws {
    try await withWorld { world in
      try world.check("keyhole set defaults/app/key 1; echo s | keyhole set keychain/generic/s/a/value")
      for path in ["", "/", ".", "//"] {
        try refuses(world, "keyhole rm -r '\(path)'", "nothing was removed")
      }
      try refuses(world, "keyhole rm -r defaults", "defaults/app")
      try refuses(world, "keyhole rm -r keychain", "nothing was removed")
      try refuses(world, "keyhole rm -r keychain/generic/", "keychain/generic/s")
      try refuses(world, "keyhole rm -r keychain/internet", "it is empty")
      try world.check(
        "keyhole get defaults/app/key; keyhole get keychain/generic/s/a/value; echo", prints: "1\ns\n")
      try world.check("keyhole rm -r defaults/app; keyhole rm -r keychain/generic/s; keyhole ls defaults")
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
