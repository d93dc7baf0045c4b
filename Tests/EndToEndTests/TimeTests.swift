import Glibc
import Testing

/// Section 1: tools that set times.
@Suite(.timeLimit(.minutes(1))) struct TimeTests {
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

  /// Not the time of the mount or of the command.
  @Test func foldersOfTheKeychainHaveTheTimeOfTheLatestChangeInThem() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        for i in s/a s/b t/a; do mkdir -p keychain/generic/$i; echo x > keychain/generic/$i/value; done
        touch -d @1000000000.5 keychain/generic/s/a/value; touch -d @1100000000 keychain/generic/s/b/value
        touch -d @1200000000 keychain/generic/t/a/value
        """)
      let look = "stat -c %.1Y keychain keychain/generic keychain/generic/s keychain/generic/t"
      let times = "1200000000.0\n1200000000.0\n1100000000.0\n1200000000.0\n"
      try keyhole.check(look, prints: times)
      try keyhole.remount()
      try keyhole.check(look, prints: times)
      try keyhole.check(
        "touch -d @1300000000 keychain/generic/s/a/value; rm -r keychain/generic/t; stat -c %Y keychain/generic keychain/generic/s; rm -r keychain/generic/s/a; stat -c %Y keychain/generic/s",
        prints: "1300000000\n1300000000\n1100000000\n")
      try keyhole.unmount()
      try keyhole.world.check(
        "TZ=UTC keyhole ls -l keychain/generic | cut -f 3", prints: "2004-11-09T11:33:20Z\n")
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
