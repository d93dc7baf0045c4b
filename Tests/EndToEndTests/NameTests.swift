import Foundation
import Glibc
import TestSupport
import Testing

/// SPECIFICATION.md, section 2, as the encoding that the tests expect: written from its sentences, not from the code.
enum ExpectedName {
  static func encoded(_ name: String, encodingSemicolon: Bool = false) -> String {
    if name.isEmpty { return "%" }
    var result = ""
    for (index, scalar) in name.unicodeScalars.enumerated() {
      let isEscaped =
        scalar == "/" || scalar == "%" || scalar.value < 0x20 || scalar.value == 0x7F
        || (scalar == "." && index == 0) || (scalar == ";" && encodingSemicolon)
      if isEscaped {
        let hex = String(scalar.value, radix: 16, uppercase: true)
        result += "%" + (hex.count == 1 ? "0" : "") + hex
      } else {
        result.unicodeScalars.append(scalar)
      }
    }
    return result
  }

  /// The longest beginning of an encoded name of at most 230 bytes that ends at a scalar and in no escape.
  static func beginning(_ encoded: String) -> String {
    var result: [UInt8] = []
    var rest = Array(encoded.unicodeScalars)[...]
    while let first = rest.first {
      let count = first == "%" ? 3 : 1
      let unit = rest.prefix(count).flatMap { Array(String($0).utf8) }
      if result.count + unit.count > 230 { break }
      result += unit
      rest = rest.dropFirst(count)
    }
    return String(decoding: result, as: UTF8.self)
  }

  /// A random name of up to `scalars` scalars, of every kind that the encoding treats differently.
  static func random(scalars: Int, using random: inout SplitMix64) -> String {
    var name = String.UnicodeScalarView()
    for _ in 0..<Int.random(in: 0...scalars, using: &random) {
      let range: ClosedRange<UInt32> =
        switch Int.random(in: 0..<8, using: &random) {
        case 0: 0x00...0x1F
        case 1: 0x20...0x7F
        case 2: 0x25...0x2F
        case 3: 0x80...0x7FF
        case 4: 0x300...0x36F
        case 5: 0x800...0xD7FF
        case 6: 0xE000...0xFFFF
        default: 0x10000...0x10FFFF
        }
      if let scalar = Unicode.Scalar(UInt32.random(in: range, using: &random)) { name.append(scalar) }
    }
    return String(name)
  }
}

@Suite(.timeLimit(.minutes(1))) struct NameTests {
  /// A plain name and the name in the tree.
  static let names: [(plain: String, encoded: String)] = [
    ("volume", "volume"), ("with space", "with space"), ("a/b", "a%2Fb"), ("100%", "100%25"),
    ("%41", "%2541"),
    ("", "%"), (".hidden", "%2Ehidden"), (".", "%2E"), ("..", "%2E."), ("a.b", "a.b"), ("\u{1}", "%01"),
    ("a\nb", "a%0Ab"), ("tab\t", "tab%09"), ("\u{1F}", "%1F"), ("\u{7F}", "%7F"), ("\u{80}", "\u{80}"),
    ("größe", "größe"), ("日本語", "日本語"), ("🔑", "🔑"), ("a;b", "a;b"), ("-rf", "-rf"), ("*", "*"),
    ("../../etc/passwd", "%2E.%2F..%2Fetc%2Fpasswd"), ("\u{202E}x", "\u{202E}x"), ("\u{FEFF}", "\u{FEFF}"),
  ]

  /// A slash and the mark behind it are one Character: commands take names as the mount does, and rules hold for them.
  @Test func namesThatBeginWithAMark() async throws {
    try await withKeyhole { keyhole in
      let mark = "\u{301}x"
      try keyhole.check(
        "keyhole set 'defaults/\(mark)/a' 1; cat 'defaults/\(mark)/a'; keyhole get 'defaults/\(mark)/a'; keyhole ls defaults",
        prints: "1\n1\n\(mark)\n")
      try keyhole.check(
        """
        mkdir -p 'keychain/generic/\(mark)/\(mark)'; printf s > 'keychain/generic/\(mark)/\(mark)/value'
        keyhole get 'keychain/generic/\(mark)/\(mark)/value'; setfattr -n user.keyhole.programs -v 'deny *' 'keychain/generic/\(mark)'
        """, prints: "s")
      try keyhole.refuses("cat 'keychain/generic/\(mark)/\(mark)/value'", .denied)
    }
  }

  @Test func keysAreEncodedAndAttributeHoldsThePlainName() async throws {
    try await withKeyhole { keyhole in
      try System.mkdir(keyhole / "defaults/s")
      for (plain, encoded) in Self.names {
        #expect(ExpectedName.encoded(plain) == encoded)
        let path = keyhole / "defaults/s/\(encoded)"
        try System.write(path, "value of \(encoded)")
        #expect(try System.attribute(path, "user.keyhole.name") == plain, "\(encoded)")
      }
      let encoded = Set(Self.names.map(\.encoded))
      #expect(Set(try System.names(keyhole / "defaults/s")) == encoded)
      try keyhole.remount()
      #expect(Set(try System.names(keyhole / "defaults/s")) == encoded)
      for (_, encoded) in Self.names {
        #expect(try System.text(keyhole / "defaults/s/\(encoded)") == "value of \(encoded)\n")
      }
    }
  }

  /// On a terminal, and in events and reports wherever they go, no name steers anything; for programs `ls` prints it as it is.
  @Test func namesSteerNoTerminal() async throws {
    try await withKeyhole { keyhole in
      let world = keyhole.world
      let name = "a\u{9B}31m\u{202E}b"
      try keyhole.check("keyhole set 'defaults/s/\(name)' x; mkdir 'keychain/generic/\(name)'")
      try keyhole.check("keyhole ls defaults/s; keyhole get 'defaults/s/\(name)'", prints: "\(name)\nx\n")
      let scripts = [
        "keyhole ls defaults/s", "keyhole ls -l keychain/generic",
        "keyhole attr 'defaults/s/\(name)' comment \(name) 2>&1",
        "keyhole get 'defaults/s/\(name)x' 2>&1", "keyhole rm 'defaults/\(name)' 2>&1",
        "keyhole set 'defaults/s/\(name)~' x 2>&1",
        "keyhole import -n --to 'defaults/\(name)' /dev/null 2>&1", "keyhole mount '/\(name)' 2>&1",
        "keyhole '\(name)' 2>&1",
        "echo x > 'keychain/generic/\(name)/x'; keyhole status; keyhole status --json",
        "cat .keyhole/events & keyhole set 'defaults/s/\(name)' y; kill $!",
        "keyhole log; keyhole doctor",
      ]
      for script in scripts {
        let session = try Terminal(
          ["/bin/bash", "-c", script], environment: world.environment, directory: keyhole.mount,
          errors: world.outside + "/errors")
        let text = try session.finish().text
        let steers = text.unicodeScalars.contains {
          !["\n", "\r", "\t"].contains($0) && ($0.value < 0x20 || 0x7F...0x9F ~= $0.value || $0 == "\u{202E}")
        }
        #expect(!steers, "\(script): \(text.debugDescription)")
      }
    }
  }

  @Test func suitesAreEncodedToo() async throws {
    try await withKeyhole { keyhole in
      for (plain, encoded) in Self.names
      where !plain.isEmpty && !plain.contains("/") && !plain.unicodeScalars.contains("\0") {
        try System.mkdir(keyhole / "defaults/\(encoded)")
        try System.write(keyhole / "defaults/\(encoded)/k", "x")
        #expect(try System.attribute(keyhole / "defaults/\(encoded)", "user.keyhole.name") == plain)
        // Its file has the plain name, as Foundation's would.
        #expect(System.exists(keyhole.suiteFile(plain)), "\(encoded)")
      }
      let before = try System.names(keyhole / "defaults")
      try keyhole.remount()
      #expect(try System.names(keyhole / "defaults") == before)
    }
  }

  @Test func servicesAndAccountsAreEncodedToo() async throws {
    try await withKeyhole { keyhole in
      for (plain, encoded) in Self.names {
        let item = keyhole / "keychain/generic/\(encoded)/\(encoded)"
        try System.mkdir(keyhole / "keychain/generic/\(encoded)")
        try System.mkdir(item)
        try System.write(item + "/value", "secret")
        #expect(try System.attribute(item, "user.service") == plain, "\(encoded)")
        #expect(try System.attribute(item, "user.account") == plain, "\(encoded)")
        #expect(try System.attribute(item, "user.keyhole.name") == plain, "\(encoded)")
      }
      try keyhole.remount()
      #expect(Set(try System.names(keyhole / "keychain/generic")) == Set(Self.names.map(\.encoded)))
    }
  }

  static let notCanonical = [
    "%41", "a%2fb", "a%2", "a%", "%ZZ", "%%", "a%20b", ".hidden", "...", "%2e", "a\nb", "a\u{7F}", "\u{1}",
    "x%00%", "%C3%A9", "%2", "%3B", "x%~0123456789abcdef", "x%~",
  ]

  @Test(arguments: notCanonical)
  func nameThatIsNoCanonicalEncodingIsMissingAndInvalid(name: String) async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir defaults/s keychain/generic/s; echo 1 > defaults/s/k")
      for folder in ["defaults", "keychain/generic", "keychain/generic/s"] {
        #expect(failure { _ = try System.status(keyhole / "\(folder)/\(name)") } == .missing, "\(folder)")
        #expect(failure { try System.mkdir(keyhole / "\(folder)/\(name)") } == .invalid, "\(folder)")
      }
      #expect(failure { _ = try System.status(keyhole / "defaults/s/\(name)") } == .missing)
      // In a suite, names with a leading dot or a final tilde are scratch (section 6).
      guard !name.hasPrefix("."), !name.hasSuffix("~") else { return }
      #expect(failure { try System.write(keyhole / "defaults/s/\(name)", "x") } == .invalid)
      #expect(
        failure { try System.rename(keyhole / "defaults/s/k", keyhole / "defaults/s/\(name)") } == .invalid)
    }
  }

  @Test func semicolonIsEscapedInAnInternetPasswordsLastLevelOnly() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir 'keychain/internet/a;b'")
      #expect(failure { try System.mkdir(keyhole / "keychain/internet/a%3Bb") } == .invalid)
      try keyhole.check("mkdir 'keychain/internet/a;b/c%3Bd'; ls 'keychain/internet/a;b'", prints: "c%3Bd\n")
    }
  }

  @Test func nameThatIsNotUTF8IsAnIllegalSequence() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir defaults/s; echo 1 > defaults/s/k")
      try keyhole.check(
        #"""
        perl -e '
          use Errno qw(EILSEQ ENOENT); use Fcntl;
          for my $name ("\xff\xfe", "x\xc3", "..\xc0\xaf", "\xed\xa0\x80", "\xf5\x80\x80\x80") {
            for my $folder ("defaults", "keychain/generic", "keychain/internet") {
              mkdir "$folder/$name" and print "made\n"; $! == EILSEQ or print "mkdir $folder: $!\n";
              lstat "$folder/$name" and print "found\n"; $! == EILSEQ or $! == ENOENT or print "lstat: $!\n";
            }
            sysopen(F, "defaults/s/$name", O_WRONLY | O_CREAT) and print "created\n";
            $! == EILSEQ or print "open: $!\n";
            rename "defaults/s/k", "defaults/s/$name" and print "renamed\n"; $! == EILSEQ or print "rename: $!\n";
          }'
        """#)
      try keyhole.check("ls defaults defaults/s", prints: "defaults:\ns\n\ndefaults/s:\nk\n")
    }
  }

  @Test func nameOfOver255BytesIsTooLong() async throws {
    let longest = String(repeating: "a", count: 255)
    try await withKeyhole { keyhole in
      try System.mkdir(keyhole / "defaults/s")
      try System.write(keyhole / "defaults/s/\(longest)", "1")
      #expect(try System.text(keyhole / "defaults/s/\(longest)") == "1\n")
      #expect(try System.names(keyhole / "defaults/s") == [longest])
      let tooLong = [
        longest + "a", String(repeating: "é", count: 128), String(repeating: "x", count: 3000),
        String(repeating: "%25", count: 86),
      ]
      for name in tooLong {
        for folder in ["defaults/s", "keychain/generic", "defaults"] {
          #expect(failure { _ = try System.status(keyhole / "\(folder)/\(name)") } == .nameTooLong)
        }
        #expect(failure { try System.write(keyhole / "defaults/s/\(name)", "1") } == .nameTooLong)
        #expect(failure { try System.mkdir(keyhole / "keychain/generic/\(name)") } == .nameTooLong)
        #expect(
          failure { try System.rename(keyhole / "defaults/s/\(longest)", keyhole / "defaults/s/\(name)") }
            == .nameTooLong)
      }
    }
  }

  static let tooLongInTheStore = [
    String(repeating: "a", count: 256),
    String(repeating: "a", count: 229) + "é" + String(repeating: "b", count: 100),
    String(repeating: "a", count: 228) + "/" + String(repeating: "b", count: 100),
    String(repeating: "日", count: 200), String(repeating: "/", count: 100), String(repeating: "🔑", count: 64),
    "." + String(repeating: "x", count: 300), String(repeating: "a", count: 300) + "1",
    String(repeating: "a", count: 300) + "2",
  ]

  @Test func nameTooLongInTheStoreAppearsCut() async throws {
    try await withKeyhole { keyhole in
      let world = keyhole.world
      let entries = Self.tooLongInTheStore.enumerated().map {
        "<key>\($0.element)</key><integer>\($0.offset)</integer>"
      }
      try keyhole.writeSuite("long", entries.joined() + "<key>short</key><true/>")
      var expected: Set<String> = ["short"]
      for (number, plain) in Self.tooLongInTheStore.enumerated() {
        let hash = try world.run(["/usr/bin/sha256sum"], sending: Array(plain.utf8)).text.prefix(16)
        let name = ExpectedName.beginning(ExpectedName.encoded(plain)) + "%~" + hash
        expected.insert(name)
        let path = keyhole / "defaults/long/\(name)"
        #expect(try System.text(path) == "\(number)\n")
        #expect(try System.attribute(path, "user.keyhole.name") == plain)
        try System.write(path, "\(number + 100)")
      }
      #expect(Set(try System.names(keyhole / "defaults/long")) == expected)
      for name in expected { try System.unlink(keyhole / "defaults/long/\(name)") }
      #expect(try System.names(keyhole / "defaults/long").isEmpty)
    }
  }

  @Test func formsOfUnicodeStayApart() async throws {
    try await withKeyhole { keyhole in
      let composed = "caf\u{E9}", decomposed = "cafe\u{301}"
      for folder in ["defaults/s", "keychain/generic/s"] { try System.mkdir(keyhole / folder) }
      try System.write(keyhole / "defaults/s/\(composed)", "1")
      #expect(failure { _ = try System.status(keyhole / "defaults/s/\(decomposed)") } == .missing)
      try System.write(keyhole / "defaults/s/\(decomposed)", "2")
      for name in [composed, decomposed] {
        try System.mkdir(keyhole / "keychain/generic/s/\(name)")
        try System.write(keyhole / "keychain/generic/s/\(name)/value", Array(name.utf8))
        try System.mkdir(keyhole / "defaults/\(name)")
      }
      try keyhole.remount()
      #expect(try System.text(keyhole / "defaults/s/\(composed)") == "1\n")
      #expect(try System.text(keyhole / "defaults/s/\(decomposed)") == "2\n")
      for name in [composed, decomposed] {
        #expect(try System.read(keyhole / "keychain/generic/s/\(name)/value") == Array(name.utf8))
      }
      try keyhole.check(
        "ls defaults | wc -l; ls defaults/s | wc -l; ls keychain/generic/s | wc -l", prints: "3\n2\n2\n")
    }
  }

  @Test(arguments: [1, 2, 3] as [UInt64])
  func anyStringIsANameAndComesBack(seed: UInt64) async throws {
    try await withKeyhole { keyhole in
      var random = SplitMix64(seed: seed)
      var names: [String: String] = [:]
      for folder in ["defaults/s", "keychain/generic/s", "keychain/internet/s"] {
        try System.mkdir(keyhole / folder)
      }
      while names.count < 200 {
        let plain = ExpectedName.random(scalars: 20, using: &random)
        // Unequal strings may be canonically equivalent, so the bytes are the key.
        names[ExpectedName.encoded(plain).utf8.map { String($0) }.joined(separator: ",")] = plain
      }
      let encoded = names.values.map { ExpectedName.encoded($0) }.filter { $0.utf8.count <= 255 }
      for name in encoded {
        try System.write(keyhole / "defaults/s/\(name)", "x")
      }
      for name in encoded.prefix(60) {
        try System.mkdir(keyhole / "keychain/generic/s/\(name)")
        try System.write(keyhole / "keychain/generic/s/\(name)/value", "x")
      }
      try keyhole.remount()
      for plain in names.values {
        let name = ExpectedName.encoded(plain)
        let stored = try System.attribute(keyhole / "defaults/s/\(name)", "user.keyhole.name")
        #expect(Array(stored.utf8) == Array(plain.utf8), "\(name)")
      }
      let bytes: (String) -> [UInt8] = { Array($0.utf8) }
      #expect(Set(try System.names(keyhole / "defaults/s").map(bytes)) == Set(encoded.map(bytes)))
      #expect(
        Set(try System.names(keyhole / "keychain/generic/s").map(bytes)) == Set(encoded.prefix(60).map(bytes))
      )
    }
  }
}
