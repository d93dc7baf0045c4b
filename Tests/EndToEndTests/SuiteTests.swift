import Foundation
import Glibc
import TestSupport
import Testing

/// Section 1: suites and keys come and go as folders and files do.
@Suite(.timeLimit(.minutes(1))) struct SuiteTests {
  @Test func mkdirCreatesASuiteThatStays() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir defaults/com.example.app; ls defaults; ls -A defaults/com.example.app",
        prints: "com.example.app\n")
      try keyhole.remount()
      try keyhole.check("ls defaults", prints: "com.example.app\n")
    }
  }

  @Test func rmdirRemovesAnEmptySuiteOnly() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir defaults/a defaults/b; echo 1 > defaults/b/k; rmdir defaults/a; ls defaults", prints: "b\n")
      #expect(failure { try System.rmdir(keyhole / "defaults/b") } == .notEmpty)
      try keyhole.check("rm defaults/b/k; rmdir defaults/b; ls defaults")
      try keyhole.remount()
      try keyhole.check("ls defaults; ls -A \"$CONFIG\" | grep plist$ || true")
    }
  }

  @Test func removingRecursivelyRemovesAFullSuite() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir defaults/a; for i in {1..50}; do echo $i > defaults/a/k$i; done; rm -r defaults/a; ls defaults"
      )
      try keyhole.remount()
      try keyhole.check("ls defaults")
    }
  }

  @Test func keyIsCreatedListedAndRemoved() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "cd defaults; mkdir a; echo 1 > a/k; echo 2 > a/l; ls a; rm a/k; ls a; cat a/l",
        prints: "k\nl\nl\n2\n")
      #expect(failure { _ = try System.status(keyhole / "defaults/a/k") } == .missing)
      try keyhole.remount()
      try keyhole.check("ls defaults/a; cat defaults/a/l", prints: "l\n2\n")
    }
  }

  @Test func keysSurviveARestartAndAKill() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir defaults/a; echo one > defaults/a/k; echo 2 > defaults/a/l")
      try keyhole.remount()
      try keyhole.check("cat defaults/a/k defaults/a/l; echo two > defaults/a/k", prints: "one\n2\n")
      try keyhole.crash()
      try keyhole.check("cat defaults/a/k defaults/a/l", prints: "two\n2\n")
    }
  }

  @Test func suiteNameWithASlashIsInvalid() async throws {
    try await withKeyhole { keyhole in
      #expect(failure { try System.mkdir(keyhole / "defaults/a%2Fb") } == .invalid)
      #expect(failure { try System.mkdir(keyhole / "defaults/%") } == .invalid)
      try keyhole.check("ls defaults; mkdir defaults/a")
      #expect(failure { try System.rename(keyhole / "defaults/a", keyhole / "defaults/a%2Fb") } == .invalid)
      try keyhole.check("ls defaults", prints: "a\n")
    }
  }

  @Test func suiteIsAPropertyListNamedForIt() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir defaults/com.example.app; echo 1 > defaults/com.example.app/k; ls \"$CONFIG\"/*.plist | wc -l; grep -c k \"$CONFIG/com.example.app.plist\" >/dev/null",
        prints: "1\n")
      try keyhole.check("rm -r defaults/com.example.app; ls -A \"$CONFIG\" | grep plist$ || true")
    }
  }

  @Test func manyKeysAreListedOnce() async throws {
    try await withKeyhole { keyhole in
      let count = 2000
      let entries = (0..<count).map { "<key>key\($0)</key><integer>\($0)</integer>" }.joined()
      try keyhole.writeSuite("many", entries)
      try keyhole.check(
        "ls defaults/many | wc -l; ls defaults/many | sort | uniq -d; cat defaults/many/key1999; find defaults -type f | wc -l",
        prints: "\(count)\n1999\n\(count)\n")
    }
  }

  @Test func listingWhileKeysComeAndGoKeepsTheOthers() async throws {
    try await withKeyhole { keyhole in
      try keyhole.writeSuite(
        "many", (0..<500).map { "<key>stay\($0)</key><integer>\($0)</integer>" }.joined())
      let churn = try keyhole.launch([
        "/bin/bash", "-c",
        "echo ready; until read -t 0; do echo 1 > defaults/many/gone; rm defaults/many/gone; done; read line",
      ])
      _ = try churn.line()
      for _ in 0..<20 {
        let names = try System.names(keyhole / "defaults/many").filter { $0.hasPrefix("stay") }
        #expect(names.count == 500)
      }
      try churn.send("stop\n")
      #expect(try churn.finish().error == "")
    }
  }
}

extension MountedKeyhole {
  func suiteFile(_ suite: String) -> String {
    "\(world.config)/\(suite).plist"
  }

  /// Replaces a suite's property list from outside, in one step, as Foundation does, and waits until it is seen.
  func writeSuite(_ suite: String, _ entries: String) throws {
    try replaceSuite(suite, with: Array(PropertyListText.xml("<dict>\(entries)</dict>").utf8))
    let folder = self / "defaults/\(suite)"
    let seen = holds(within: .seconds(5)) { System.exists(folder) }
    if !seen { throw TimedOut(what: "the suite \(suite), written from outside") }
  }

  func replaceSuite(_ suite: String, with bytes: [UInt8]) throws {
    let new = world.config + "/outside-writer"
    try System.write(new, bytes)
    try System.rename(new, suiteFile(suite))
  }
}
