import Glibc
import Testing

/// Section 7: extended attributes, as getfattr and setfattr show them.
@Suite(.timeLimit(.minutes(1))) struct AttributeTests {
  static let before = """
    mkdir defaults/s; echo 42 > defaults/s/k
    mkdir -p keychain/generic/my.service/peter; echo x > keychain/generic/my.service/peter/value
    """
  static let generic = "keychain/generic/my.service/peter"

  /// The four calls, and what the kernel itself does with flags and buffers. The rules of the attributes are in TreeTests.
  @Test func callsReachTheTree() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      let (key, item) = (keyhole / "defaults/s/k", keyhole / Self.generic)
      #expect(try System.attributeNames(key) == ["user.keyhole.type"])
      #expect(
        try System.attributeNames(item + "/value") == [
          "user.service", "user.account", "user.keyhole.created", "user.keyhole.modified",
          "user.keyhole.label",
        ])
      #expect(failure { try System.setAttribute(item, "user.comment", "x", flag: .replace) } == .noData)
      #expect(failure { try System.setAttribute(item, "user.comment", "x", flag: .create) } == nil)
      #expect(failure { try System.setAttribute(item, "user.comment", "y", flag: .create) } == .exists)
      #expect(failure { try System.setAttribute(item, "user.comment", "z", flag: .replace) } == nil)
      #expect(failure { try System.setAttribute(item, "user.comment", "z", flag: .both) } == .invalid)
      #expect(try System.attribute(item + "/value", "user.comment") == "z")
      #expect(failure { try System.setAttribute(item, "user.account", "other") } == .notPermitted)
      try System.removeAttribute(item + "/value", "user.comment")
      #expect(failure { _ = try System.attribute(item, "user.comment") } == .noData)
      #expect(failure { try System.removeAttribute(item, "user.comment") } == .noData)
      for (path, name, value) in [
        (key, "user.keyhole.type", "integer"), (item, "user.service", "my.service"),
      ] {
        #expect(try System.attributeLength(path, name, capacity: 0) == value.utf8.count)
        #expect(failure { _ = try System.attributeLength(path, name, capacity: 3) } == .range)
        #expect(try System.attributeLength(path, name, capacity: value.utf8.count) == value.utf8.count)
      }
    }
  }

  @Test func toolsReadAndRestoreThem() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      try keyhole.check(
        """
        getfattr -d defaults/s/k; cd \(Self.generic)
        setfattr -n user.comment -v c .; setfattr -n user.isInvisible -v true .; setfattr -n user.keyhole.created -v 2020-01-02T03:04:05Z .
        """, prints: "# file: defaults/s/k\nuser.keyhole.type=\"integer\"\n\n")
      let before = try keyhole.sh("getfattr -d \(Self.generic)")
      #expect(before.text.contains("user.comment=\"c\""))
      try keyhole.check("getfattr -d \(Self.generic) > \"$OUT/dump\"; setfattr --restore=\"$OUT/dump\"")
      #expect(try keyhole.sh("getfattr -d \(Self.generic)") == before)
      // Tools that look for attributes everywhere.
      try keyhole.check(
        "ls -lZ \(Self.generic) > /dev/null; getfattr -d -m - -R . > /dev/null; cp -a \(Self.generic) \"$OUT/item\"; ls -l defaults/s > /dev/null; getfattr -d . defaults keychain"
      )
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
}
