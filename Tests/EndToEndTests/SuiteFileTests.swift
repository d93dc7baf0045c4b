import Foundation
import Glibc
import TestSupport
import Testing

/// Section 3: a suite is the property list that Foundation's `UserDefaults` uses, also while others write to it.
@Suite(.timeLimit(.minutes(1))) struct SuiteFileTests {
  static let good = PropertyListText.xml("<dict><key>k</key><integer>1</integer></dict>")

  /// The value in the suite's file, as Foundation reads it.
  static func stored(_ keyhole: MountedKeyhole, _ suite: String, _ key: String) throws -> NSObject? {
    let dictionary = try PropertyListText.value(System.text(keyhole.suiteFile(suite))) as? [String: Any]
    return dictionary?[key] as? NSObject
  }

  @Test func outsideWriteIsSeenByTheNextOpen() async throws {
    try await withKeyhole { keyhole in
      try keyhole.writeSuite("s", "<key>k</key><integer>1</integer>")
      for number in 2..<30 {
        try keyhole.replaceSuite(
          "s", with: Array(PropertyListText.xml("<dict><key>k</key><integer>\(number)</integer></dict>").utf8)
        )
        let seen = try holds {
          try System.text(keyhole / "defaults/s/k") == "\(number)\n"
        }
        #expect(seen, "\(number)")
      }
      try System.unlink(keyhole.suiteFile("s"))
      #expect(holds { !System.exists(keyhole / "defaults/s") })
    }
  }

  @Test func writeThroughTheMountKeepsWhatOthersWrote() async throws {
    try await withKeyhole { keyhole in
      try keyhole.writeSuite("s", "<key>k</key><integer>1</integer>")
      for number in 0..<20 {
        // In the same instant: the mount has to read before it writes.
        try keyhole.replaceSuite(
          "s",
          with: Array(
            PropertyListText.xml("<dict><key>outside</key><integer>\(number)</integer></dict>").utf8))
        try System.write(keyhole / "defaults/s/inside", "\(number)")
        try keyhole.check(
          "cat defaults/s/outside defaults/s/inside; ls defaults/s",
          prints: "\(number)\n\(number)\ninside\noutside\n")
      }
    }
  }

  /// A file that never was a suite: the error names its problem, and is not ENOENT.
  @Test func aFileThatIsNoSuiteSaysWhy() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir defaults/ok")
      try keyhole.world.check(
        "echo garbage > \"$CONFIG/s.plist\"; truncate -s 1G \"$CONFIG/large.plist\"")
      try keyhole.refuses("cat defaults/s/k", .io)
      try keyhole.refuses("ls defaults/s", .io)
      try keyhole.refuses("echo 1 > defaults/s/k", .io)
      try keyhole.refuses("cat defaults/large/k", .fileTooBig)
      try keyhole.refuses("cat defaults/none/k", .missing)
      try keyhole.check("ls defaults", prints: "ok\n")
      let mended = try keyhole.world.sh("rm \"$CONFIG/s.plist\"; keyhole set defaults/s/k 1")
      #expect(mended.status == 0, "\(mended)")
      #expect(try holds { try keyhole.sh("cat defaults/s/k").text == "1\n" })
    }
  }

  @Test func damagedSuiteShowsTheLastGoodValuesReadOnly() async throws {
    try await withKeyhole { keyhole in
      try keyhole.writeSuite("s", "<key>k</key><integer>1</integer>")
      try keyhole.check("cat defaults/s/k", prints: "1\n")
      let damaged = Array(Self.good.utf8.dropLast(30))
      try keyhole.replaceSuite("s", with: damaged)
      let refused = holds {
        failure { _ = try OpenFile(keyhole / "defaults/s/k", O_WRONLY) } == .readOnly
      }
      #expect(refused)
      try keyhole.check("cat defaults/s/k", prints: "1\n")
      #expect(failure { try System.write(keyhole / "defaults/s/new", "x") } == .readOnly)
      #expect(failure { try System.unlink(keyhole / "defaults/s/k") } == .readOnly)
      #expect(failure { try System.rename(keyhole / "defaults/s/k", keyhole / "defaults/s/l") } == .readOnly)
      #expect(
        failure { try System.setAttribute(keyhole / "defaults/s/k", "user.keyhole.type", "string") }
          == .readOnly)
      try keyhole.refuses("echo 2 > defaults/s/k", .readOnly)
      #expect(try System.read(keyhole.suiteFile("s")) == damaged)
      let doctor = try keyhole.world.sh("keyhole doctor 2>&1")
      #expect(doctor.text.contains("s.plist"))
      // Mended from outside, it is a suite like any other.
      try keyhole.writeSuite("s", "<key>k</key><integer>5</integer>")
      #expect(try holds { try System.text(keyhole / "defaults/s/k") == "5\n" })
      #expect(
        holds { failure { try System.write(keyhole / "defaults/s/k", "6") } == nil })
      try keyhole.check("cat defaults/s/k", prints: "6\n")
    }
  }

  @Test func otherFilesInTheFolderAreNotTouched() async throws {
    try await withKeyhole { keyhole in
      let world = keyhole.world
      try world.check(
        "cd \"$CONFIG\"; mkdir app; echo x > app/settings; echo y > notes.txt; echo z > .hidden; touch -d @1000000000 notes.txt"
      )
      try keyhole.check(
        "mkdir defaults/s; echo 1 > defaults/s/k; mv defaults/s defaults/t; rm -r defaults/t; ls defaults")
      try world.check(
        "cd \"$CONFIG\"; cat app/settings notes.txt .hidden; stat -c %Y notes.txt",
        prints: "x\ny\nz\n1000000000\n")
    }
  }

  @Test func twoMountsOverOneFolderBothWin() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir defaults/s")
      // The command writes without the mount's process: the same file, the same lock.
      let writers = try ["a", "b"].map { name in
        try Program(
          [
            "/bin/bash", "-c",
            "for i in {1..20}; do keyhole set defaults/s/\(name)$i $i || echo failed; done",
          ], environment: keyhole.world.environment, directory: keyhole.world.outside)
      }
      for number in 0..<50 { try System.write(keyhole / "defaults/s/c\(number)", "\(number)") }
      for writer in writers { #expect(try writer.finish() == Output(status: 0, bytes: [], error: "")) }
      let complete = try holds { try System.names(keyhole / "defaults/s").count == 90 }
      #expect(complete)
    }
  }
}
