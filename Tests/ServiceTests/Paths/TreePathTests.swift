import Testing

@testable import Service

@Suite struct TreePathTests {
  @Test(arguments: [
    ("defaults/a/b", ["defaults", "a", "b"]), ("/defaults//a/./b/", ["defaults", "a", "b"]), ("", []),
    (".", []),
    ("a/..", ["a", ".."]), ("a/\u{301}b", ["a", "\u{301}b"]),
  ])
  func componentsAreBetweenSlashes(text: String, components: [String]) {
    #expect(TreePath(text).components == components)
  }

  @Test func kindIsInTheFirstComponent() {
    #expect(TreePath("").needsKeychain && !TreePath("").isSecret)
    #expect(TreePath("keychain/generic").needsKeychain && TreePath("keychain/generic").isSecret)
    #expect(!TreePath("defaults/keychain").needsKeychain && !TreePath("defaults/keychain").isSecret)
    #expect(TreePath("keychain/generic/s/a/otpauth").isOtpauth && !TreePath("defaults/s/otpauth").isOtpauth)
  }

  /// Names of files that no store keeps.
  @Test(arguments: [
    (
      "keychain/generic/s/a/notes",
      "The secret's file is keychain/generic/s/a/value; a slash in a name is written %2F"
    ),
    (
      "keychain/other/x/notes",
      "The secret's file is keychain/other/x/value; a slash in a name is written %2F"
    ),
    ("defaults/s/.volume.swp", "The key is written defaults/s/%2Evolume.swp"),
    ("defaults/s/volume~", "Give the key another name"),
  ])
  func temporaryNameSaysWhatIsStored(path: String, advice: String) {
    #expect(TreePath(path).storedName == advice)
  }

  @Test(arguments: [
    "defaults/s/volume", "defaults/s", "keychain/generic/s/a/value", "keychain/generic/s/a/otpauth",
    "keychain/generic/s/a", "keychain/other/x/value",
  ])
  func storedNameHasNoAdvice(path: String) {
    #expect(TreePath(path).storedName == nil)
  }
}
