import Glibc
import TestSupport
import Testing

/// Section 1: mtime is that of the value's last change.
@Suite(.timeLimit(.minutes(1))) struct TimeTests {
  @Test func commitGivesANewTime() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir defaults/a; echo 1 > defaults/a/k; mkdir -p keychain/generic/s/p; echo x > keychain/generic/s/p/value"
      )
      for (path, content) in [("defaults/a/k", "2"), ("keychain/generic/s/p/value", "y")] {
        try System.setModified(keyhole / path, seconds: 1_000_000_000)
        let start = time(nil)
        try System.write(keyhole / path, content)
        let changed = try System.status(keyhole / path).st_mtim.tv_sec
        #expect(changed >= start && changed <= time(nil) + 1, "\(path)")
      }
    }
  }

  @Test func readingAndAttributesOfOthersLeaveIt() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir defaults/a; echo 1 > defaults/a/k; echo 1 > defaults/a/l; touch -d @1000000000 defaults/a/k; cat defaults/a/k; echo 2 > defaults/a/l; rm defaults/a/l; stat -c %Y defaults/a/k",
        prints: "1\n1000000000\n")
    }
  }

  @Test func setTimesAreKeptAcrossARestart() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir defaults/a; echo 1 > defaults/a/k; echo 1 > defaults/a/l; touch -d @1000000000 defaults/a/k; touch -d @1100000000 defaults/a/l; stat -c %Y defaults/a/k",
        prints: "1000000000\n")
      try keyhole.remount()
      try keyhole.check("stat -c %Y defaults/a/k defaults/a/l", prints: "1000000000\n1100000000\n")
    }
  }

  @Test func timeSetBetweenWriteAndCloseIsTheCommits() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir defaults/a; mkdir -p keychain/generic/s/p; cd \"$OUT\"; echo 42 > from; touch -d @1000000000 from"
      )
      for path in ["defaults/a/k", "keychain/generic/s/p/value"] {
        // New, and over an old value.
        try keyhole.check("cp -a \"$OUT/from\" \(path); stat -c %Y \(path)", prints: "1000000000\n")
        try keyhole.check(
          "touch -d @1200000000 \"$OUT/from\"; echo 43 > \(path); cp -a \"$OUT/from\" \(path); stat -c %Y \(path); touch -d @1000000000 \"$OUT/from\"",
          prints: "1200000000\n")
        try keyhole.check(
          "echo 44 > \(path); rsync -a \"$OUT/from\" \(path); stat -c %Y \(path)", prints: "1000000000\n")
      }
      try keyhole.check("cat defaults/a/k keychain/generic/s/p/value", prints: "42\n42")
      try keyhole.check("cp -a defaults/a/k \"$OUT/to\"; stat -c %Y \"$OUT/to\"", prints: "1000000000\n")
    }
  }

  @Test func keyThatNobodyTimedHasItsFilesTime() async throws {
    try await withKeyhole { keyhole in
      let new = keyhole.world.config + "/outside"
      try System.write(new, PropertyListText.xml("<dict><key>k</key><integer>1</integer></dict>"))
      try System.setModified(new, seconds: 1_000_000_000)
      try System.rename(new, keyhole.suiteFile("foreign"))
      let modified = { (try? System.status(keyhole / "defaults/foreign/k"))?.st_mtim.tv_sec }
      _ = holds(within: .seconds(2)) { modified() != nil }
      #expect(modified() == 1_000_000_000)
    }
  }

  @Test func touchTimesAKeyAndAnItem() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir defaults/a; echo 1 > defaults/a/k; mkdir -p keychain/generic/s/p; echo x > keychain/generic/s/p/value; touch -d @1000000000 defaults/a/k keychain/generic/s/p/value; stat -c %Y defaults/a/k keychain/generic/s/p/value; cat defaults/a/k keychain/generic/s/p/value",
        prints: "1000000000\n1000000000\n1\nx")
      let start = time(nil)
      try keyhole.check("touch defaults/a/k keychain/generic/s/p/value")
      #expect(try System.status(keyhole / "defaults/a/k").st_mtim.tv_sec >= start)
      #expect(try System.status(keyhole / "keychain/generic/s/p/value").st_mtim.tv_sec >= start)
    }
  }
}
