import Glibc
import Testing

/// Section 3: an unmodified Foundation program and the mount on one suite.
@Suite(.timeLimit(.minutes(1))) struct FoundationTests {
  /// Some of the values that the program writes, as the mount shows them. SuitesTests has each type, both ways.
  static let written: [(key: String, type: String, content: String)] = [
    ("emoji", "string", "e\u{301} é 😀\u{200D}👍🏽\n"), ("lines", "string", "a\r\nb\rc\n\n"),
    ("%", "string", "the empty key\n"), ("key <&>", "string", "odd key\n"),
    ("maxUInt", "integer", "18446744073709551615\n"), ("double", "real", "0.1\n"), ("true", "bool", "true\n"),
    ("date", "date", "2026-11-21T07:53:00Z\n"), ("noData", "data", ""),
    ("array", "array", "[\n  1,\n  \"two\",\n  [\n    3.5,\n    true\n  ]\n]\n"),
  ]

  @Test func mountShowsWhatTheProgramSynchronized() async throws {
    try await withKeyhole { keyhole in
      try keyhole.world.check("FoundationProgram write com.example.app")
      let there = holds { System.exists(keyhole / "defaults/com.example.app/string") }
      try #require(there)
      for row in Self.written {
        let path = keyhole / "defaults/com.example.app/\(row.key)"
        let text = try System.text(path)
        #expect(text == row.content, "\(row.key)")
        #expect(try System.attribute(path, "user.keyhole.type") == row.type, "\(row.key)")
      }
      #expect(try System.read(keyhole / "defaults/com.example.app/data") == (0...255).map { $0 })
      #expect(try System.text(keyhole / "defaults/com.example.app/dict").hasPrefix("<?xml"))
    }
  }

  /// Contents that are written through the mount, and how the program prints them.
  static let read: [(key: String, type: String, content: String, printed: String)] = [
    ("s", "string", "hé\n", "string 68 e9"), ("i", "integer", "42", "integer 42"),
    ("d", "real", "0.1", "real 0.1"),
    ("t", "bool", "true", "bool true"), ("date", "date", "2026-11-21T07:53:00Z", "date 1795247580"),
    ("data", "data", "hi", "data 68 69"),
    ("a", "array", #"[1,"x",[]]"#, "array [integer 1, string 78, array []]"),
    ("o", "dict", "{}", "dict {}"), ("a%2Fb", "integer", "7", "integer 7"),
    ("%2Ehidden", "integer", "8", "integer 8"),
  ]

  @Test func programReadsWhatTheMountWrote() async throws {
    try await withKeyhole { keyhole in
      try System.mkdir(keyhole / "defaults/com.example.app")
      for row in Self.read { try keyhole.create("com.example.app/\(row.key)", row.type, row.content) }
      // A key without a value yet must not spoil the others.
      try keyhole.check("touch defaults/com.example.app/touched; mkdir defaults/empty")
      for row in Self.read {
        let plain = row.key == "a%2Fb" ? "a/b" : row.key == "%2Ehidden" ? ".hidden" : row.key
        let output = try keyhole.world.run([Products.foundationProgram, "read", "com.example.app", plain])
        #expect(output.text == row.printed + "\n", "\(row.key)")
      }
      try keyhole.world.check("FoundationProgram read com.example.app touched", prints: "data \n")
      try keyhole.world.check("FoundationProgram keys com.example.app", prints: "\(Self.read.count + 1)\n")
    }
  }

  @Test func typesOfTheProgramAreKept() async throws {
    try await withKeyhole { keyhole in
      try keyhole.world.check(
        "FoundationProgram set app volume integer 5; FoundationProgram set app ratio real 2; FoundationProgram set app flag bool true; FoundationProgram set app name string 42"
      )
      let there = holds { System.exists(keyhole / "defaults/app/name") }
      try #require(there)
      try keyhole.check("cd defaults/app; echo 6 > volume; echo 3 > ratio; echo 0 > flag; echo 43 > name")
      for (key, printed) in [
        ("volume", "integer 6"), ("ratio", "real 3.0"), ("flag", "bool false"), ("name", "string 34 33"),
      ] {
        try keyhole.world.check("FoundationProgram read app \(key)", prints: printed + "\n")
      }
      try keyhole.check("rm defaults/app/flag")
      try keyhole.world.check(
        "FoundationProgram read app flag; FoundationProgram remove app name", prints: "missing\n")
      #expect(holds { !System.exists(keyhole / "defaults/app/name") })
    }
  }

  @Test func changesOfTheProgramAreSeenWhole() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir defaults/app; echo 0 > defaults/app/n; for i in {1..200}; do echo text$i; done > defaults/app/long"
      )
      let program = try Program(
        [Products.foundationProgram, "count", "app", "n", "200"], environment: keyhole.world.environment,
        directory: keyhole.world.outside)
      // The program rewrites the file in place, so half of it can be caught at any time: the values stay good ones.
      var last = 0
      while !program.hasEnded {
        let text = try System.text(keyhole / "defaults/app/n")
        let number = try #require(Int(text.dropLast()), "\(text)")
        #expect(number >= last)
        last = number
        #expect(try System.text(keyhole / "defaults/app/long").hasSuffix("text200\n"))
      }
      #expect(try program.finish().status == 0)
      #expect(
        try holds { try System.text(keyhole / "defaults/app/n") == "200\n" })
      // Not taken for damaged either.
      try keyhole.check("echo 7 > defaults/app/n")
    }
  }
}
