import Glibc
import Testing

/// Section 7: extended attributes, as getfattr and setfattr show them.
@Suite(.timeLimit(.minutes(1))) struct AttributeTests {
  static let before = """
    mkdir defaults/s; echo 42 > defaults/s/k
    mkdir -p keychain/generic/my.service/peter 'keychain/internet/my.server/peter;protocol=ssh;port=22'
    echo x > keychain/generic/my.service/peter/value; echo x > 'keychain/internet/my.server/peter;protocol=ssh;port=22/value'
    """
  static let generic = "keychain/generic/my.service/peter"
  static let internet = "keychain/internet/my.server/peter;protocol=ssh;port=22"

  @Test func keysHaveTypeListedAndNameByName() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      let key = keyhole / "defaults/s/k"
      #expect(try System.attributeNames(key) == ["user.keyhole.type"])
      #expect(try System.attribute(key, "user.keyhole.name") == "k")
      try keyhole.check(
        "getfattr -d defaults/s/k", prints: "# file: defaults/s/k\nuser.keyhole.type=\"integer\"\n\n")
      try keyhole.check(
        "setfattr -n user.keyhole.type -v string defaults/s/k; getfattr --only-values -n user.keyhole.type defaults/s/k",
        prints: "string")
      for name in ["user.comment", "user.x", "user.keyhole.label", "user.keyhole.created", "user.keyhole.x"] {
        #expect(failure { try System.setAttribute(key, name, "x") } == .notSupported, "\(name)")
        let read = failure { _ = try System.attribute(key, name) }
        #expect(read == .notSupported || read == .noData, "\(name)")
      }
    }
  }

  @Test func itemListsItsOwnAttributes() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for path in [Self.generic, Self.generic + "/value"] {
        #expect(
          try System.attributeNames(keyhole / path) == [
            "user.service", "user.account", "user.keyhole.created", "user.keyhole.modified",
            "user.keyhole.label",
          ])
        #expect(try System.attribute(keyhole / path, "user.service") == "my.service")
        #expect(try System.attribute(keyhole / path, "user.account") == "peter")
        #expect(try System.attribute(keyhole / path, "user.keyhole.label") == "my.service")
        #expect(try System.attribute(keyhole / path, "user.keyhole.name") == "peter")
      }
      for path in [Self.internet, Self.internet + "/value"] {
        #expect(
          try System.attributeNames(keyhole / path) == [
            "user.server", "user.account", "user.protocol", "user.port", "user.keyhole.created",
            "user.keyhole.modified", "user.keyhole.label",
          ])
        #expect(try System.attribute(keyhole / path, "user.port") == "22")
        #expect(try System.attribute(keyhole / path, "user.keyhole.label") == "my.server")
      }
    }
  }

  @Test func directoryAndValueHaveTheSameAttributes() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      try keyhole.check(
        """
        cd \(Self.generic); setfattr -n user.comment -v one .; getfattr --only-values -n user.comment value; echo
        setfattr -n user.comment -v two value; getfattr --only-values -n user.comment .; echo
        getfattr -d . | tail -n +2 > "$OUT/a"; getfattr -d value | tail -n +2 > "$OUT/b"; cmp "$OUT/a" "$OUT/b"
        setfattr -x user.comment value; getfattr -n user.comment . 2>&1 | grep -c 'No such attribute'
        """, prints: "one\ntwo\n1\n")
    }
  }

  /// An attribute, a value that it takes, and what it reads as.
  static let accepted: [(name: String, value: String)] = [
    ("comment", "a comment"), ("comment", ""), ("comment", "größer 🔑\nzwei"), ("description", "what it is"),
    ("creator", "1234"), ("type", "4294967295"), ("generic", "bytes"), ("isInvisible", "true"),
    ("isNegative", "true"),
    ("xdg:schema", "org.example"), ("own", "x"), ("keyhole.label", "A label"),
    ("keyhole.created", "2020-01-02T03:04:05Z"),
    ("keyhole.modified", "2021-01-02T03:04:05Z"),
  ]

  @Test func attributesAreKeptAcrossARestart() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for (name, value) in Self.accepted {
        let attribute = "user." + name
        #expect(
          failure { try System.setAttribute(keyhole / Self.generic, attribute, value) } == nil, "\(name)")
        #expect(try System.attribute(keyhole / Self.generic, attribute) == value, "\(name)")
        #expect(try System.attributeNames(keyhole / Self.generic).contains(attribute), "\(name)")
        try keyhole.remount()
        #expect(try System.attribute(keyhole / Self.generic, attribute) == value, "\(name)")
      }
    }
  }

  @Test func valueThatIsNotAllowedIsInvalid() async throws {
    let refused = [
      ("creator", "x"), ("creator", "-1x"), ("type", "1.5"), ("isInvisible", "yes"), ("isInvisible", "1"),
      ("isNegative", ""),
      ("keyhole.created", "yesterday"), ("keyhole.created", "2020-01-02T03:04:05.5Z"),
      ("keyhole.created", "2020-13-02T03:04:05Z"),
      ("keyhole.accessible", "sometimes"), ("keyhole.accessible", ""),
      ("keyhole.eol", "lf"),
    ]
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      let before = try keyhole.sh("getfattr -d \(Self.generic)")
      for (name, value) in refused {
        #expect(
          failure { try System.setAttribute(keyhole / Self.generic, "user." + name, value) } == .invalid,
          "\(name)=\(value)")
      }
      #expect(try keyhole.sh("getfattr -d \(Self.generic)") == before)
    }
  }

  @Test func identityAcceptsOnlyTheValueThatItHas() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for (path, name, value) in [
        (Self.generic, "service", "my.service"), (Self.generic, "account", "peter"),
        (Self.internet, "server", "my.server"), (Self.internet, "protocol", "ssh"),
        (Self.internet, "port", "22"),
      ] {
        let item = keyhole / path
        #expect(failure { try System.setAttribute(item, "user." + name, value) } == nil, "\(name)")
        let other = name == "port" ? "23" : "other"
        #expect(failure { try System.setAttribute(item, "user." + name, other) } == .notPermitted, "\(name)")
        #expect(failure { try System.removeAttribute(item, "user." + name) } == nil, "\(name)")
        #expect(try System.attribute(item, "user." + name) == value, "\(name)")
      }
      for name in ["domain", "path"] {
        #expect(
          failure { try System.setAttribute(keyhole / Self.internet, "user." + name, "x") } == .notPermitted,
          "\(name)")
      }
    }
  }

  /// The attribute that `setfacl -m u::rw,g::-,o::-` sets.
  static let accessControlList: [UInt8] =
    [2, 0, 0, 0] + [1, 4, 32].flatMap { [$0, 0, $0 == 1 ? 6 : 0, 0, 255, 255, 255, 255] as [UInt8] }

  @Test func unknownNamesAreNotSupported() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      let names = [
        "user.keyhole.nonsense", "user.keyhole.", "system.posix_acl_access", "system.posix_acl_default",
        "security.selinux",
        "security.capability", "trusted.x",
      ]
      for path in [
        "defaults", "defaults/s", "defaults/s/k", Self.generic, Self.generic + "/value", "keychain/generic",
        ".keyhole/status",
      ] {
        for name in names {
          // The kernel itself looks into an access control list, and lets a well-formed one pass; a default one is
          // for directories only.
          let value = name.hasPrefix("system") ? Self.accessControlList : Array("x".utf8)
          let set = failure { try System.setAttribute(keyhole / path, name, bytes: value) }
          #expect(
            set == .notSupported || (name == "security.capability" && set == .invalid)
              // Without CAP_SYS_ADMIN the kernel answers for these by itself: xattr(7).
              || (["security.capability", "trusted.x"].contains(name) && set == .notPermitted)
              || (name == "system.posix_acl_default" && set == .denied),
            "\(path) \(name): \(String(describing: set))")
          let get = failure { _ = try System.attribute(keyhole / path, name) }
          // security.capability is asked for before each write; the kernel takes both answers for none.
          #expect(
            get == .notSupported
              || (!name.hasPrefix("user.") && !name.hasPrefix("system.") && get == .noData),
            "\(path) \(name)")
        }
      }
      #expect(failure { try System.setAttribute(keyhole / "defaults/s/k", "label", "x") } == .notSupported)
    }
  }

  @Test func probingToolsSayNothing() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      let output = try keyhole.sh(
        "ls -lZ \(Self.generic) > /dev/null; getfattr -d -m - -R . > /dev/null; cp -a \(Self.generic) \"$OUT/item\"; ls -l defaults/s > /dev/null"
      )
      #expect(output.error == "" && output.status == 0)
    }
  }

  @Test func missingAttributeHasNoData() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      #expect(failure { _ = try System.attribute(keyhole / Self.generic, "user.comment") } == .noData)
      #expect(failure { try System.removeAttribute(keyhole / Self.generic, "user.comment") } == .noData)
      #expect(failure { _ = try System.attribute(keyhole / Self.generic, "user.nothing") } == .noData)
    }
  }

  @Test func removingWhatIsComputedSucceedsAndChangesNothing() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for name in [
        "user.keyhole.created", "user.keyhole.modified", "user.keyhole.label", "user.keyhole.name",
        "user.service",
      ] {
        let before = try System.attribute(keyhole / Self.generic, name)
        #expect(failure { try System.removeAttribute(keyhole / Self.generic, name) } == nil, "\(name)")
        #expect(try System.attribute(keyhole / Self.generic, name) == before, "\(name)")
      }
      #expect(failure { try System.removeAttribute(keyhole / "defaults/s/k", "user.keyhole.type") } == nil)
      #expect(try System.attribute(keyhole / "defaults/s/k", "user.keyhole.type") == "integer")
    }
  }

  @Test func createAndReplaceAreObeyed() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      let item = keyhole / Self.generic
      #expect(failure { try System.setAttribute(item, "user.comment", "x", flag: .replace) } == .noData)
      #expect(failure { try System.setAttribute(item, "user.comment", "x", flag: .create) } == nil)
      #expect(failure { try System.setAttribute(item, "user.comment", "y", flag: .create) } == .exists)
      #expect(failure { try System.setAttribute(item, "user.comment", "z", flag: .replace) } == nil)
      #expect(failure { try System.setAttribute(item, "user.comment", "z", flag: .both) } == .invalid)
      #expect(try System.attribute(item, "user.comment") == "z")
      #expect(
        failure {
          try System.setAttribute(keyhole / "defaults/s/k", "user.keyhole.type", "string", flag: .create)
        } == .exists)
      #expect(
        failure {
          try System.setAttribute(keyhole / "defaults/s/k", "user.keyhole.type", "string", flag: .replace)
        } == nil)
    }
  }

  @Test func lengthIsToldAndSmallBuffersAreOutOfRange() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for (path, name, value) in [
        ("defaults/s/k", "user.keyhole.type", "integer"), (Self.generic, "user.service", "my.service"),
      ] {
        #expect(try System.attributeLength(keyhole / path, name, capacity: 0) == value.utf8.count)
        #expect(failure { _ = try System.attributeLength(keyhole / path, name, capacity: 3) } == .range)
        #expect(
          try System.attributeLength(keyhole / path, name, capacity: value.utf8.count) == value.utf8.count)
      }
    }
  }

  @Test func attributesAreWrittenBackAsListed() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      try keyhole.check(
        "cd \(Self.generic); setfattr -n user.comment -v c .; setfattr -n user.isInvisible -v true .; setfattr -n user.keyhole.created -v 2020-01-02T03:04:05Z ."
      )
      let before = try keyhole.sh("getfattr -d \(Self.generic)")
      #expect(before.text.contains("user.comment=\"c\""))
      try keyhole.check("getfattr -d \(Self.generic) > \"$OUT/dump\"; setfattr --restore=\"$OUT/dump\"")
      #expect(try keyhole.sh("getfattr -d \(Self.generic)") == before)
    }
  }

  @Test func modifiedFollowsTheValueAndCreatedDoesNot() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      try keyhole.check(
        "cd \(Self.generic); setfattr -n user.keyhole.created -v 2020-01-02T03:04:05Z .; touch -d 2020-06-01T00:00:00Z value; getfattr --only-values -n user.keyhole.modified .",
        prints: "2020-06-01T00:00:00Z")
      try keyhole.check(
        "cd \(Self.generic); echo y > value; getfattr --only-values -n user.keyhole.created .",
        prints: "2020-01-02T03:04:05Z")
      try keyhole.check(
        "cd \(Self.generic); [ \"$(getfattr --only-values -n user.keyhole.modified value)\" = \"$(TZ=UTC date -d @$(stat -c %Y value) +%Y-%m-%dT%H:%M:%SZ)\" ]"
      )
    }
  }

  @Test func stagedItemTakesEveryNameAndDropsAForeignIdentity() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        mkdir -p keychain/generic/s/p; cd keychain/generic/s/p
        setfattr -n user.account -v other .; setfattr -n user.comment -v kept .; setfattr -n user.anything -v too .
        echo x > value; cat value
        for a in account comment anything; do getfattr --only-values -n user.$a .; echo; done; ls ..
        """, prints: "xp\nkept\ntoo\np\n")
    }
  }

  @Test func attributesOfFoldersDoNotExist() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      for path in [".", "defaults", "keychain", "keychain/generic", "keychain/generic/my.service"] {
        #expect(failure { try System.setAttribute(keyhole / path, "user.comment", "x") } != nil, "\(path)")
      }
      try keyhole.check("getfattr -d . defaults keychain")
    }
  }
}
