import Glibc
import Testing

/// Section 1: items of the keychain, staged ones, and the folders that they are in.
@Suite(.timeLimit(.minutes(1))) struct ItemTests {
  @Test func stagedItemIsAnEmptyListedDirectoryOfThisMountOnly() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir -p keychain/generic/s/p; ls keychain/generic keychain/generic/s; ls -A keychain/generic/s/p",
        prints: "keychain/generic:\ns\n\nkeychain/generic/s:\np\n")
      // Another process, over the same keychain, does not see it.
      let listed = try keyhole.world.sh("keyhole ls keychain/generic/s")
      #expect(!listed.text.contains("p"))
      try keyhole.remount()
      try keyhole.check("ls keychain/generic")
    }
  }

  @Test func stagedItemBecomesAnItemWhenItsValueIsWritten() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir -p keychain/generic/my.service/peter; echo hunter2 > keychain/generic/my.service/peter/value; ls keychain/generic/my.service/peter; cat keychain/generic/my.service/peter/value",
        prints: "value\nhunter2")
      try keyhole.remount()
      try keyhole.check(
        "find keychain/generic | sort; cat keychain/generic/my.service/peter/value",
        prints:
          "keychain/generic\nkeychain/generic/my.service\nkeychain/generic/my.service/peter\nkeychain/generic/my.service/peter/value\nhunter2"
      )
    }
  }

  @Test func rmdirDropsAStagedItem() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir -p keychain/generic/s/p; rmdir keychain/generic/s/p; ls keychain/generic/s")
    }
  }

  @Test func rmdirOfAnItemWithAValueIsRefused() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir -p keychain/generic/s/p; echo x > keychain/generic/s/p/value")
      #expect(failure { try System.rmdir(keyhole / "keychain/generic/s/p") } == .notEmpty)
      #expect(failure { try System.rmdir(keyhole / "keychain/generic/s") } == .notEmpty)
      try keyhole.check("cat keychain/generic/s/p/value", prints: "x")
    }
  }

  @Test func attributesOfAStagedItemGoIntoTheKeychain() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir -p keychain/generic/s/p; cd keychain/generic/s/p; setfattr -n user.comment -v 'at home' .; setfattr -n user.keyhole.label -v Lock .; echo x > value"
      )
      try keyhole.remount()
      try keyhole.check(
        "cd keychain/generic/s/p; getfattr --only-values -n user.comment .; echo; getfattr --only-values -n user.keyhole.label value",
        prints: "at home\nLock")
    }
  }

  @Test func removingAValueDeletesTheSecretAtOnce() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir -p keychain/generic/s/p; echo x > keychain/generic/s/p/value; rm keychain/generic/s/p/value; ls -A keychain/generic/s keychain/generic/s/p",
        prints: "keychain/generic/s:\np\n\nkeychain/generic/s/p:\n")
      try keyhole.crash()
      try keyhole.check("ls keychain/generic")
    }
  }

  @Test func newValueInARemovedOnesPlaceIsTheSameItem() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir -p keychain/generic/s/p; cd keychain/generic/s/p; echo x > value; setfattr -n user.comment -v kept .; setfattr -n user.keyhole.created -v 2020-01-02T03:04:05Z .; rm value; getfattr --only-values -n user.comment .; echo y > value",
        prints: "kept")
      try keyhole.remount()
      try keyhole.check(
        "cd keychain/generic/s/p; cat value; getfattr --only-values -n user.comment .; getfattr --only-values -n user.keyhole.created .",
        prints: "ykept2020-01-02T03:04:05Z")
    }
  }

  @Test func directoryOfARemovedValueGoesByRmdir() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir -p keychain/generic/s/p; cd keychain/generic/s; echo x > p/value; setfattr -n user.comment -v old p; rm p/value; rmdir p; ls; mkdir p; getfattr -n user.comment p 2>&1 | grep -o 'No such attribute'",
        prints: "No such attribute\n")
    }
  }

  @Test func removingRecursivelyDeletesItemAndSecret() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir -p keychain/generic/s/p keychain/generic/t/q; for i in s/p t/q; do echo x > keychain/generic/$i/value; done; rm -r keychain/generic/s/p; ls keychain/generic/s; rm -r keychain/generic/t; ls keychain/generic",
        prints: "s\n")
      try keyhole.remount()
      try keyhole.check("ls keychain/generic")
    }
  }

  @Test func emptiedServiceStaysUntilItIsRemovedOrTheMountEnds() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "cd keychain/generic; mkdir -p s/p t/q made; echo x > s/p/value; echo x > t/q/value; rm -r s/p t/q; ls; rmdir t; ls",
        prints: "made\ns\nt\nmade\ns\n")
      try keyhole.remount()
      try keyhole.check("ls keychain/generic")
    }
  }

  @Test func itemsSurviveARestartAndAKill() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "cd keychain/generic; for i in {1..30}; do mkdir -p s$((i % 3))/p$i; echo secret$i > s$((i % 3))/p$i/value; done"
      )
      try keyhole.crash()
      let script =
        "cd keychain/generic; for i in {1..30}; do [ \"$(cat s$((i % 3))/p$i/value)\" = secret$i ] || echo wrong $i; done; ls"
      try keyhole.check(script, prints: "s0\ns1\ns2\n")
      try keyhole.remount()
      try keyhole.check(script, prints: "s0\ns1\ns2\n")
    }
  }

  @Test func writingWithoutADirectoryIsMissing() async throws {
    try await withKeyhole { keyhole in
      #expect(failure { try System.write(keyhole / "keychain/generic/s/p/value", "x") } == .missing)
      #expect(failure { try System.mkdir(keyhole / "keychain/generic/s/p") } == .missing)
    }
  }
}

/// Section 1: an internet password's identity is in its name.
@Suite(.timeLimit(.minutes(1))) struct InternetPasswordTests {
  static let accepted: [(name: String, attributes: [String: String])] = [
    ("peter", ["account": "peter"]),
    ("peter;protocol=ssh;port=8080", ["account": "peter", "protocol": "ssh", "port": "8080"]),
    (
      "peter;domain=Realm;protocol=https;auth=httpDigest;port=443;path=%2Fprivate",
      [
        "account": "peter", "domain": "Realm", "protocol": "https", "authenticationType": "httpDigest",
        "port": "443", "path": "/private",
      ]
    ),
    ("%", [:]),
    ("%;protocol=smb", ["protocol": "smb"]),
    ("peter;protocol=gopher", ["account": "peter", "protocol": "gopher"]),
    ("peter;auth=sasl", ["account": "peter", "authenticationType": "sasl"]),
    ("a%3Bb;path=c%3Bd", ["account": "a;b", "path": "c;d"]),
    ("peter;port=65535", ["account": "peter", "port": "65535"]),
    ("a=b;path=c=d", ["account": "a=b", "path": "c=d"]),
  ]

  @Test func nameHoldsTheIdentity() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir keychain/internet/my.server")
      for (name, attributes) in Self.accepted {
        let item = keyhole / "keychain/internet/my.server/\(name)"
        try System.mkdir(item)
        try System.write(item + "/value", "secret of \(name)")
        for (attribute, value) in attributes {
          #expect(try System.attribute(item, "user.\(attribute)") == value, "\(name) \(attribute)")
        }
        #expect(try System.attribute(item, "user.server") == "my.server")
        let identity = ["account", "domain", "protocol", "authenticationType", "port", "path"]
        for absent in identity where attributes[absent] == nil {
          // `%` is an absent account as well as an empty one.
          let text = try? System.attribute(item, "user.\(absent)")
          #expect(text == nil || (absent == "account" && text == ""), "\(name) \(absent)")
        }
      }
      try keyhole.remount()
      let names = Self.accepted.map(\.name).sorted {
        Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8))
      }
      #expect(try System.names(keyhole / "keychain/internet/my.server") == names)
      for (name, _) in Self.accepted {
        #expect(try System.text(keyhole / "keychain/internet/my.server/\(name)/value") == "secret of \(name)")
      }
    }
  }

  @Test func everyProtocolAndAuthenticationTypeIsKept() async throws {
    let protocols =
      "ftp ftpAccount http irc nntp pop3 smtp socks imap ldap appleTalk afp telnet ssh ftps https httpProxy httpsProxy ftpProxy smb rtsp rtspProxy daap eppc ipp nntps ldaps telnetS imaps ircs pop3s"
    let types = "ntlm msn dpa rpa httpBasic httpDigest htmlForm default"
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        cd keychain/internet; mkdir s; cd s
        for p in \(protocols); do mkdir "a;protocol=$p"; echo x > "a;protocol=$p/value"
        [ "$(getfattr --only-values -n user.protocol "a;protocol=$p")" = $p ] || echo $p; done
        for t in \(types); do mkdir "a;auth=$t"; echo x > "a;auth=$t/value"
        [ "$(getfattr --only-values -n user.authenticationType "a;auth=$t")" = $t ] || echo $t; done
        ls | wc -l
        """, prints: "39\n")
    }
  }

  @Test(arguments: [
    "peter;unknown=1", "peter;port=8080;protocol=ssh", "peter;protocol=ssh;domain=x", "peter;port=080",
    "peter;port=+80", "peter;port=", "peter;port=65536", "peter;port=-1", "peter;port=8080;port=8080",
    "peter;",
    "peter;protocol", "peter;server=x", "peter;port=80x", "peter;account=x", ";protocol=ssh",
  ])
  func otherNamesAreInvalid(name: String) async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir keychain/internet/s")
      #expect(failure { try System.mkdir(keyhole / "keychain/internet/s/\(name)") } == .invalid)
      #expect(failure { _ = try System.status(keyhole / "keychain/internet/s/\(name)") } == .missing)
    }
  }

  @Test func genericNamesKeepTheirSemicolons() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir -p 'keychain/generic/s;t/a;port=x'; cd 'keychain/generic/s;t/a;port=x'; echo x > value; getfattr --only-values -n user.account .; getfattr --only-values -n user.service .",
        prints: "a;port=xs;t")
    }
  }
}
