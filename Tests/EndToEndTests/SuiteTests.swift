import Glibc
import TestSupport
import Testing

/// Section 1: suites and keys come and go as folders and files do.
@Suite(.timeLimit(.minutes(1))) struct SuiteTests {
  @Test func keysSurviveARestartAndAKill() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir defaults/a; echo one > defaults/a/k; echo 2 > defaults/a/l")
      try keyhole.remount()
      try keyhole.check("cat defaults/a/k defaults/a/l; echo two > defaults/a/k", prints: "one\n2\n")
      try keyhole.crash()
      try keyhole.check(
        "cat defaults/a/k defaults/a/l; ls \"$CONFIG\"/*.plist | wc -l; rm -r defaults/a; ls defaults; ls -A \"$CONFIG\" | grep plist$ || true",
        prints: "two\n2\n1\n")
    }
  }
}

extension MountedKeyhole {
  /// A new key with a type and a content, as tar makes it.
  func create(_ path: String, _ type: String, _ content: String) throws {
    let file = try OpenFile(self / "defaults/\(path)", O_WRONLY | O_CREAT | O_EXCL)
    try System.setAttribute(file, "user.keyhole.type", type)
    try file.write(content)
    try file.close()
  }

  func suiteFile(_ suite: String) -> String {
    "\(world.config)/\(suite).plist"
  }

  /// Replaces a suite's property list from outside, in one step, as Foundation does, and waits until it is seen.
  func writeSuite(_ suite: String, _ entries: String) throws {
    try replaceSuite(suite, with: Array(PropertyListText.xml("<dict>\(entries)</dict>").utf8))
    let folder = self / "defaults/\(suite)"
    let seen = holds { System.exists(folder) }
    if !seen { throw TimedOut(what: "the suite \(suite), written from outside") }
  }

  func replaceSuite(_ suite: String, with bytes: [UInt8]) throws {
    let new = world.config + "/outside-writer"
    try System.write(new, bytes)
    try System.rename(new, suiteFile(suite))
  }
}
