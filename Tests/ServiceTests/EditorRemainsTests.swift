import Testing

@testable import Service

/// The files of editors that `keyhole doctor` names beside a link.
@Suite struct EditorRemainsTests {
  @Test(arguments: [
    ".env~", ".env.save", ".env.save.1", "#.env#", ".env.~2~", ".env.swp", ".env.swo", "..env.un~",
  ])
  func isFound(name: String) { #expect(EditorRemains.isRemains(name, of: ".env")) }

  @Test(arguments: [".env", ".env.local", ".env.example", "other~", ".env.swift", ".envrc", ".env.sw"])
  func isAnothersFile(name: String) { #expect(!EditorRemains.isRemains(name, of: ".env")) }

  @Test func theSwapFileOfAPlainNameBeginsWithADot() {
    #expect(EditorRemains.isRemains(".token.swp", of: "token"))
    #expect(!EditorRemains.isRemains("token.swp", of: "token"))
  }
}
