import Glibc
import Testing

/// Section 1: what mv does.
@Suite(.timeLimit(.minutes(1))) struct MoveTests {
  /// Two suites and two generic passwords and an internet one.
  static let before = """
    mkdir defaults/a defaults/b; echo 1 > defaults/a/k; echo two > defaults/a/l; echo true > defaults/b/m
    mkdir -p keychain/generic/s/p keychain/generic/s/q keychain/generic/t keychain/internet/h/p
    echo secret > keychain/generic/s/p/value; echo other > keychain/generic/s/q/value
    echo net > keychain/internet/h/p/value
    setfattr -n user.comment -v note keychain/generic/s/p
    setfattr -n user.keyhole.created -v 2020-01-02T03:04:05Z keychain/generic/s/p
    """

  @Test func withinASuiteRenamesAKey() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      try keyhole.check(
        "touch -d @1000000000 defaults/a/k; mv defaults/a/k defaults/a/n; ls defaults/a; cat defaults/a/n; getfattr --only-values -n user.keyhole.type defaults/a/n; stat -c ' %Y' defaults/a/n",
        prints: "l\nn\n1\ninteger 1000000000\n")
      try keyhole.crash()
      try keyhole.check(
        "ls defaults/a; cat defaults/a/n; stat -c %Y defaults/a/n", prints: "l\nn\n1\n1000000000\n")
    }
  }

  @Test func betweenSuitesMovesAKey() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      try keyhole.check(
        "setfattr -n user.keyhole.type -v string defaults/a/k; touch -d @1000000000 defaults/a/k; mv defaults/a/k defaults/b/; ls defaults/a defaults/b; cat defaults/b/k; getfattr --only-values -n user.keyhole.type defaults/b/k; stat -c ' %Y' defaults/b/k",
        prints: "defaults/a:\nl\n\ndefaults/b:\nk\nm\n1\nstring 1000000000\n")
      try keyhole.crash()
      try keyhole.check(
        "ls defaults/a defaults/b; cat defaults/b/k", prints: "defaults/a:\nl\n\ndefaults/b:\nk\nm\n1\n")
    }
  }

  @Test func ontoAKeyReplacesItWhole() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      try keyhole.check(
        "touch -d @1000000000 defaults/a/k; mv defaults/a/k defaults/a/l; mv defaults/a/l defaults/b/m; ls defaults/a; cat defaults/b/m; getfattr --only-values -n user.keyhole.type defaults/b/m; stat -c ' %Y' defaults/b/m",
        prints: "1\ninteger 1000000000\n")
    }
  }

  @Test func suiteIsRenamedWithItsFile() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      try keyhole.check(
        "mv defaults/a defaults/c; ls defaults; cat defaults/c/k defaults/c/l; cd \"$CONFIG\"; ls *.plist",
        prints: "b\nc\n1\ntwo\nb.plist\nc.plist\n")
      try keyhole.crash()
      try keyhole.check("ls defaults; cat defaults/c/l", prints: "b\nc\ntwo\n")
    }
  }

  @Test func suiteReplacesAnEmptyOneOnly() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      #expect(failure { try System.rename(keyhole / "defaults/a", keyhole / "defaults/b") } == .notEmpty)
      try keyhole.check(
        "rm defaults/b/m; mv -T defaults/a defaults/b; ls defaults; ls defaults/b", prints: "b\nk\nl\n")
    }
  }

  @Test func itemChangesServiceAndAccount() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      let created = "2020-01-02T03:04:05Z"
      try keyhole.check(
        "cd keychain/generic; mv s/p t/r; ls s t; cd t/r; cat value; for a in account service comment keyhole.created; do getfattr --only-values -n user.$a .; echo; done",
        prints: "s:\nq\n\nt:\nr\nsecretr\nt\nnote\n\(created)\n")
      try keyhole.crash()
      try keyhole.check(
        "cd keychain/generic; ls s t; cat t/r/value; getfattr --only-values -n user.service t/r; getfattr --only-values -n user.keyhole.created t/r",
        prints: "s:\nq\n\nt:\nr\nsecrett\(created)")
    }
  }

  @Test func serviceMovesAllItsItems() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      try keyhole.check(
        "cd keychain/generic; rmdir t; mkdir s/staged; mv s u; ls . u; cat u/p/value u/q/value; getfattr --only-values -n user.service u/p",
        prints: ".:\nu\n\nu:\np\nq\nstaged\nsecretotheru")
      try keyhole.crash()
      try keyhole.check(
        "cd keychain/generic; ls . u; cat u/p/value u/q/value", prints: ".:\nu\n\nu:\np\nq\nsecretother")
      try keyhole.check(
        "cd keychain/internet; mv h i; ls . i; cat i/p/value; getfattr --only-values -n user.server i/p",
        prints: ".:\ni\n\ni:\np\nneti")
    }
  }

  @Test func internetPasswordIsRenamedByItsName() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      try keyhole.check(
        "cd keychain/internet/h; mv p 'q;protocol=ssh;port=22'; ls; cd q*; cat value; for a in account protocol port; do getfattr --only-values -n user.$a .; echo; done",
        prints: "q;protocol=ssh;port=22\nnetq\nssh\n22\n")
      #expect(
        failure {
          try System.rename(
            keyhole / "keychain/internet/h/q;protocol=ssh;port=22", keyhole / "keychain/internet/h/q;port=x")
        } == .invalid)
    }
  }

  @Test func stagedItemIsRenamed() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "cd keychain/generic; mkdir -p s/new; setfattr -n user.comment -v note s/new; mv s/new s/later; ls s; echo x > s/later/value; getfattr --only-values -n user.comment s/later; getfattr --only-values -n user.account s/later",
        prints: "later\nnotelater")
    }
  }

  static let refused: [(old: String, new: String, reason: Errno)] = [
    ("keychain/generic/s/p", "keychain/generic/s/q", .notEmpty),
    ("keychain/generic/s", "keychain/internet/s", .crossDevice),
    ("keychain/generic/s/p", "keychain/internet/h/r", .crossDevice),
    ("keychain/internet/h/p", "keychain/generic/t/r", .crossDevice),
    ("keychain/generic/s/p", "keychain/other/r", .crossDevice),
    ("keychain/generic/s/p", "keychain/generic/s/q/p", .notPermitted),
    ("keychain/generic/t", "keychain/generic/s/q/t", .notPermitted),
    ("defaults/a/k", "keychain/generic/s/p/value", .crossDevice),
    ("defaults/a", "keychain/generic/a", .crossDevice),
    ("keychain/generic/s/p/value", "defaults/a/k", .crossDevice),
    ("keychain/generic/s/p", "defaults/a/p", .crossDevice),
    ("defaults/a", "defaults/b/a", .notPermitted),
    ("defaults/a/k", "defaults/k", .notPermitted),
    ("defaults/missing", "defaults/c", .missing),
    ("defaults/a/missing", "defaults/a/n", .missing),
    ("defaults/b", "defaults/a/k", .notDirectory),
    ("defaults/a/k", "defaults/b", .isDirectory),
    ("defaults/a/k", "defaults/a/%41", .invalid),
  ]

  @Test func otherMovesAreRefusedAndChangeNothing() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      let tree = "find . | sort; cat defaults/*/* keychain/generic/*/*/value keychain/internet/*/*/value"
      let before = try keyhole.sh(tree)
      for (old, new, reason) in Self.refused {
        #expect(failure { try System.rename(keyhole / old, keyhole / new) } == reason, "\(old) → \(new)")
        #expect(try keyhole.sh(tree) == before, "\(old) → \(new)")
      }
    }
  }

  @Test func noReplaceIsObeyed() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      let key = keyhole / "defaults/a/k"
      #expect(failure { try System.rename(key, keyhole / "defaults/a/l", flag: .noReplace) } == .exists)
      #expect(
        failure { try System.rename(keyhole / "defaults/a", keyhole / "defaults/b", flag: .noReplace) }
          == .exists)
      let item = keyhole / "keychain/generic/s/p"
      #expect(
        failure { try System.rename(item, keyhole / "keychain/generic/s/q", flag: .noReplace) } == .exists)
      #expect(failure { try System.rename(key, keyhole / "defaults/a/n", flag: .noReplace) } == nil)
      #expect(failure { try System.rename(item, keyhole / "keychain/generic/s/r", flag: .noReplace) } == nil)
      try keyhole.check("cat defaults/a/n defaults/a/l keychain/generic/s/r/value", prints: "1\ntwo\nsecret")
    }
  }

  @Test func exchangeAndWhiteoutAreInvalid() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for flag in [System.RenameFlag.exchange, .whiteout] {
        #expect(
          failure { try System.rename(keyhole / "defaults/a/k", keyhole / "defaults/a/l", flag: flag) }
            == .invalid)
        #expect(
          failure {
            try System.rename(keyhole / "keychain/generic/s/p", keyhole / "keychain/generic/s/q", flag: flag)
          } == .invalid)
      }
      try keyhole.check("cat defaults/a/k defaults/a/l", prints: "1\ntwo\n")
    }
  }

  @Test func mvCopiesBetweenDefaultsAndKeychain() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      try keyhole.check(
        "mkdir keychain/generic/t/r; mv defaults/a/l keychain/generic/t/r/value; ls defaults/a; cat keychain/generic/t/r/value",
        prints: "k\ntwo")
    }
  }
}
