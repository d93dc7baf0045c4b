import Glibc
import Testing

/// Documentation/ERRORS.md, row by row: the tool's own message, and what `keyhole status` says of it.
@Suite(.timeLimit(.minutes(10))) struct RefusalTests {
  static let item = "keychain/generic/s/p"
  private static let m = Refusal.marker
  private static let rename = "perl -e 'rename $ARGV[0], $ARGV[1] or die \"perl: $!\\n\"'"
  private static let map =
    "import mmap, sys\ntry: mmap.mmap(0, 1)\nexcept OSError as e: sys.exit(f\"python3: {e.strerror}\")"

  /// In a suite with the integer `n` and the JSON `d`, with two items of one service.
  static let onAnyMount = values + otpauth + names + places + attributes + limits + mappings

  static let values = [
    Refusal(
      .invalid, "echo \(m) > defaults/s/n", by: "echo: write error",
      told: ("defaults/s/n", "can't become a value of the key's type")),
    Refusal(
      .invalid, "printf '[\"\(m)\",' | dd of=defaults/s/d status=none", by: "dd",
      told: ("defaults/s/d", "the value can't be used")),
    Refusal(
      .invalid, "truncate -s 0 defaults/s/n", by: "truncate",
      told: ("defaults/s/n", "the value can't be used")),
    Refusal(
      .invalid, "truncate -s 1 defaults/s/d", by: "truncate",
      told: ("defaults/s/d", "the value can't be used")),
  ]

  static let otpauth = [
    Refusal(
      .invalid, "echo \(m) > \(item)/otpauth", by: "echo: write error",
      told: ("\(item)/otpauth", "not an otpauth URI"))
  ]

  static let names = [
    Refusal(
      .invalid, "touch defaults/s/a%zz", by: "touch", told: ("defaults/s/a%zz", "the name can't be used")),
    Refusal(
      .invalid, "mkdir defaults/a%2fb", by: "mkdir", told: ("defaults/a%2fb", "the name can't be used")),
    Refusal(
      .illegalSequence, "touch $'defaults/s/\\xff'", by: "touch", told: ("defaults/s/\u{FFFD}", "not UTF-8")),
    Refusal(
      .nameTooLong, "touch defaults/s/$(printf %0256d 0)", by: "touch",
      told: ("defaults/s/" + String(repeating: "0", count: 256), "longer than 255 bytes")),
  ]

  static let places = [
    Refusal(.notPermitted, "touch defaults/x", by: "touch", told: ("defaults/x", "not permitted")),
    Refusal(.notPermitted, "touch x", by: "touch", told: ("x", "not permitted")),
    Refusal(.notPermitted, "mkdir defaults/s/d2", by: "mkdir", told: ("defaults/s/d2", "not permitted")),
    Refusal(.notPermitted, "mkdir \(item)/d", by: "mkdir", told: ("\(item)/d", "not permitted")),
    Refusal(
      .notPermitted, "mv \(item) keychain/generic/s/q", by: "mv",
      told: ("keychain/generic/s/q/p", "not permitted")),
    Refusal(
      .notPermitted, "ln defaults/s/n defaults/s/l", by: "ln", told: ("defaults/s/l", "a value has one name")),
    Refusal(.notPermitted, "mkfifo defaults/s/f", by: "mkfifo", told: ("defaults/s/f", "only regular files")),
    Refusal(.notPermitted, "ln -s \(m) defaults/s/l", by: "ln", told: ("defaults/s/l", "not permitted")),
    Refusal(
      .notPermitted, "chown 12345 defaults/s/n", by: "chown", told: ("defaults/s/n", "the mounting user")
    ),
    Refusal(.denied, "echo \(m) > .keyhole/status", by: "bash", told: (".keyhole/status", "only be read")),
    Refusal(.denied, "defaults/s/n", by: "bash", told: nil),
    Refusal(
      .crossDevice, "\(rename) defaults/s/n \(item)/value", by: "perl", told: ("\(item)/value", "two stores")),
    Refusal(
      .crossDevice, "\(rename) \(item) keychain/internet/s", by: "perl",
      told: ("keychain/internet/s", "two stores")),
    Refusal(.notEmpty, "rmdir defaults/s", by: "rmdir", told: ("defaults/s", "not empty")),
    Refusal(.notEmpty, "rmdir \(item)", by: "rmdir", told: (item, "not empty")),
    Refusal(
      .notEmpty, "mkdir -p defaults/t; mv -T defaults/t defaults/s", by: "mv",
      told: ("defaults/s", "not empty")),
  ]

  static let attributes = [
    Refusal(
      .invalid, "setfattr -n user.keyhole.type -v \(m) defaults/s/n", by: "setfattr",
      told: ("defaults/s/n", "the value can't be used")),
    Refusal(
      .invalid, "setfattr -n user.keyhole.accessible -v \(m) \(item)", by: "setfattr",
      told: (item, "the value can't be used")),
    Refusal(
      .notPermitted, "setfattr -n user.account -v \(m) \(item)", by: "setfattr", told: (item, "identity")),
    Refusal(.notSupported, "setfattr -n user.keyhole.nope -v \(m) \(item)", by: "setfattr", told: nil),
    // Without CAP_SYS_ADMIN the kernel itself refuses this name: xattr(7).
    Refusal(
      Privileges.isRoot ? .notSupported : .notPermitted, "setfattr -n trusted.x -v \(m) defaults/s/n",
      by: "setfattr", told: nil),
    Refusal(.noData, "setfattr -x user.nope \(item)", by: "setfattr", words: "No such attribute", told: nil),
  ]

  static let limits = [
    Refusal(
      .fileTooBig, "head -c 17M /dev/zero > defaults/s/big", by: "head",
      told: ("defaults/s/big", "at most 16777216 bytes")),
    Refusal(
      .fileTooBig, "head -c 2M /dev/zero > \(item)/value", by: "head",
      told: ("\(item)/value", "at most 1048576 bytes")),
    Refusal(
      .noSpace, "head -c 65M /dev/zero > defaults/s/.x", by: "head", told: ("defaults/s/.x", "no room left")),
    Refusal(.noSpace, "head -c 5M /dev/zero > \(item)/.x", by: "head", told: ("\(item)/.x", "no room left")),
  ]

  static let mappings = [
    Refusal(.noDevice, "python3 -c '\(map)' <> \(item)/value", by: "python3", told: nil)
  ]

  @Test func eachIsSaidByTheToolAndExplainedByTheStatus() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        mkdir -p defaults/s keychain/generic/s/p keychain/generic/s/q keychain/internet
        echo 1 > defaults/s/n; echo '{"a":1}' > defaults/s/d
        for i in p q; do echo \(Self.m) > keychain/generic/s/$i/value; done
        """)
      for refusal in Self.onAnyMount { try keyhole.expect(refusal) }
      #expect(
        failure { try System.rename(keyhole / "defaults/s/n", keyhole / "defaults/s/d", flag: .exchange) }
          == .invalid)
      #expect(try keyhole.refused().last?.contains("  defaults/s/d  two values can't change places") == true)
      try keyhole.check(
        "cat defaults/s/n defaults/s/d \(Self.item)/value", prints: "1\n{\n  \"a\": 1\n}\n\(Self.m)")
    }
  }

  // MARK: Mounts in a state of their own

  /// With the view `v` of the item.
  static let views = [
    Refusal(.notPermitted, "touch views/x", by: "touch", told: ("views/x", "makes a view")),
    Refusal(
      .loop, "echo '{{ views/v }} \(m)' | dd of=templates/t status=none", by: "dd",
      told: ("templates/t", "a reference leads to a view")),
    Refusal(.invalid, "echo '\(m)' | dd of=views/v status=none", by: "dd", told: ("views/v", "line 1")),
  ]

  static let states =
    [
      locked, readOnlyFile, readOnlyMount, older, damaged, exhausted, tooMuch, stale, unanswered, rejected,
      revoked,
    ] + asked

  static let asked = [
    Refusal(.denied, "cat \(item)/value", by: "cat", told: ("\(item)/value", "a person refused")),
    Refusal(
      .again, "dd if=\(item)/value iflag=nonblock status=none", by: "dd",
      told: ("\(item)/value", "without O_NONBLOCK")),
    Refusal(
      .denied, "setfattr -x user.keyhole.access \(item)", by: "setfattr", told: (item, "a person refused")),
    Refusal(
      .notSupported, "setfattr -n user.keyhole.access -v biometryCurrentSet keychain/generic/s/q",
      by: "setfattr", told: nil),
  ]
  static let rejected = Refusal(
    .keyRejected, "cat \(item)/value", by: "cat", told: ("\(item)/value", "is wrong"))
  static let revoked = Refusal(
    .keyRevoked, "cat \(item)/value", by: "cat", told: ("\(item)/value", "other fingers are enrolled now"))
  static let unanswered = Refusal(
    .timedOut, "cat \(item)/value", by: "cat", told: ("\(item)/value", "was not answered in time"))

  static let locked = Refusal(
    .noKey, "keyhole lock; cat \(item)/value", by: "cat", told: ("\(item)/value", "`keyhole unlock`"))
  static let readOnlyFile = Refusal(
    .readOnly, "echo '<plist>' > $CONFIG/s.plist; echo \(m) > defaults/s/n", by: "bash",
    told: ("defaults/s/n", "is damaged; the last good values are shown"))
  static let readOnlyMount = Refusal(.readOnly, "echo \(m) > defaults/s/n", by: "bash", told: nil)
  static let older = Refusal(
    .readOnly, "echo \(m) > \(item)/value", by: "bash", told: ("\(item)/value", "it is read-only"))
  static let damaged = Refusal(.io, "cat \(item)/value", by: "cat", told: ("\(item)/value", "is damaged"))
  static let exhausted = Refusal(
    .tooManyOpen, "for i in {1..64}; do exec {f}< \(item)/value; done", by: "bash",
    told: ("\(item)/value", "too many files are open"))
  static let tooMuch = Refusal(
    .noMemory, "head -c 1048576 /dev/zero > \(item)/value", by: "head",
    told: ("\(item)/value", "not enough memory"))
  static let stale = Refusal(
    .stale, "mkdir defaults/t; cd defaults/t; rm $CONFIG/t.plist; ls", by: "ls", told: nil)

  private func prepare(_ keyhole: MountedKeyhole) throws {
    try keyhole.check(
      "mkdir -p defaults/s \(Self.item); echo 1 > defaults/s/n; echo \(Self.m) > \(Self.item)/value")
  }

  @Test func aLockedKeychainSaysSo() async throws {
    try await withKeyhole { keyhole in
      try prepare(keyhole)
      try keyhole.expect(Self.locked)
      for (script, path) in [
        ("echo \(Self.m) > \(Self.item)/value", "\(Self.item)/value"),
        ("mv \(Self.item) \(Self.item).2", "\(Self.item).2"),
        ("setfattr -n user.comment -v \(Self.m) \(Self.item)", Self.item),
      ] {
        try keyhole.expect(Refusal(.noKey, script, by: nil, told: (path, "`keyhole unlock`")))
      }
    }
  }

  private func prepareGuarded(_ keyhole: MountedKeyhole) throws {
    try keyhole.check(
      """
      mkdir -p \(Self.item) keychain/generic/s/q; echo \(Self.m) > \(Self.item)/value
      setfattr -n user.keyhole.access -v userPresence \(Self.item)
      """)
  }

  @Test func whoAPersonRefusesIsToldSo() async throws {
    try await withKeyhole("auth-command=/bin/false", "auth-reuse=0") { keyhole in
      try prepareGuarded(keyhole)
      for refusal in Self.asked { try keyhole.expect(refusal) }
    }
  }

  @Test func whoIsWrongThreeTimesIsToldSo() async throws {
    try await withWorld { world in
      try world.check(
        "printf '#!/bin/sh\ncat \(world.root)/password\n' > \(world.root)/decide; chmod +x \(world.root)/decide; echo staple > \(world.root)/password"
      )
      let keyhole = MountedKeyhole(
        world,
        options: ["keychain=vault", "auth-reuse=0", "auth-timeout=300", "auth-command=\(world.root)/decide"])
      defer { keyhole.cleanUp() }
      try keyhole.start()
      try keyhole.check(
        "mkdir -p \(Self.item); setfattr -n user.keyhole.access -v applicationPassword \(Self.item); echo \(Self.m) > \(Self.item)/value",
        within: LockTests.patience)
      try world.check("echo \(Self.m) > \(world.root)/password")
      // Each try derives a key of the full cost.
      try keyhole.expect(Self.rejected, within: LockTests.patience)
    }
  }

  @Test func whoseFingersAreOthersIsToldSo() async throws {
    try await withWorld { outer in
      let list = outer.root + "/fprintd-list"
      func enroll(_ finger: String) throws {
        try outer.check(
          "printf '#!/bin/sh\necho \"Fingerprints for user $1 on Mock (press):\"; echo \" - #0: \(finger)\"\n' > \(list); chmod +x \(list)"
        )
      }
      try enroll("right-index-finger")
      let path = "PATH=\(outer.root):\(Products.folder):/usr/local/bin:/usr/bin:/bin"
      try await withKeyhole("auth-command=/bin/true", "auth-reuse=0", environment: [path]) { keyhole in
        try keyhole.check(
          "mkdir -p \(Self.item); setfattr -n user.keyhole.access -v biometryCurrentSet \(Self.item); echo \(Self.m) > \(Self.item)/value"
        )
        try enroll("left-thumb")
        try keyhole.expect(Self.revoked)
      }
    }
  }

  @Test func whoNobodyAnswersIsToldSo() async throws {
    // It never ends.
    try await withKeyhole("auth-command=/usr/bin/yes", "auth-timeout=1") { keyhole in
      try prepareGuarded(keyhole)
      try keyhole.expect(Self.unanswered)
    }
  }

  @Test func aDamagedSuiteIsReadOnly() async throws {
    try await withKeyhole { keyhole in
      try prepare(keyhole)
      try keyhole.expect(Self.readOnlyFile)
      try keyhole.check("cat defaults/s/n", prints: "1\n")
    }
  }

  /// The kernel refuses this itself, without a request to Keyhole.
  @Test func aReadOnlyMountIsReadOnly() async throws {
    try await withKeyhole("ro") { keyhole in
      try keyhole.world.check("keyhole set defaults/s/n 1")
      try keyhole.expect(Self.readOnlyMount)
    }
  }

  @Test func aVaultFromYesterdayIsReadOnly() async throws {
    try await withKeyhole { keyhole in
      try prepare(keyhole)
      try keyhole.unmount()
      try keyhole.world.check("cp -a \"$DATA/keyhole\" \"$OUT/yesterday\"")
      try keyhole.start()
      try keyhole.check("echo newer > \(Self.item)/value")
      try keyhole.unmount()
      try keyhole.world.check(
        "for f in \"$OUT\"/yesterday/vault.db*; do cp -a \"$f\" \"$DATA/keyhole/\"; done")
      try keyhole.start()
      try keyhole.expect(Self.older)
    }
  }

  @Test func aDamagedSecretSaysSo() async throws {
    try await withKeyhole { keyhole in
      try prepare(keyhole)
      try keyhole.check(
        """
        python3 - <<'EOF'
        import os, sqlite3
        with sqlite3.connect(os.environ["DATA"] + "/keyhole/vault.db") as vault: vault.execute("UPDATE secret SET sealed = zeroblob(length(sealed))")
        EOF
        """)
      try keyhole.remount()
      try keyhole.expect(Self.damaged)
    }
  }

  /// With 1 MiB of locked memory, which root too has to keep to here.
  @Test func tooManyOpenSecretsSaySo() async throws {
    let rights = Privileges.isRoot ? "setpriv --bounding-set=-ipc_lock" : ""
    try await withKeyhole(launcher: ["/bin/bash", "-c", "ulimit -l 1024; exec \(rights) \"$@\"", "bash"]) {
      keyhole in
      try keyhole.check("mkdir -p \(Self.item); head -c 100000 /dev/zero > \(Self.item)/value")
      try keyhole.expect(Self.exhausted)
      try keyhole.expect(Self.tooMuch)
      try keyhole.check("wc -c < \(Self.item)/value", prints: "100000\n")
    }
  }

  @Test func whatIsNoViewIsRefused() async throws {
    try await withWorld { world in
      let keyhole = MountedKeyhole(world, options: ["keychain=vault"])
      defer { keyhole.cleanUp() }
      try keyhole.start()
      try keyhole.check("mkdir -p \(Self.item); printf secret > \(Self.item)/value")
      try world.check("keyhole view v --format env --from A=\(Self.item)")
      for refusal in Self.views { try keyhole.expect(refusal) }
    }
  }

  @Test func aFolderThatWasRemovedElsewhereIsStale() async throws {
    try await withKeyhole { keyhole in try keyhole.expect(Self.stale) }
  }

  // MARK: The page itself

  /// Every number of the page is met above, and every one that is met above stands there, in the tools' words.
  @Test func thePageNamesThemAll() throws {
    let page = try System.text(Products.documentation + "/ERRORS.md")
    let rows = page.split(separator: "\n").filter { $0.hasPrefix("| ") }.map { row in
      row.split(separator: "|", omittingEmptySubsequences: false).map {
        String($0.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
      }
    }
    // A quota takes a disk with quotas, which is not made here; StoreErrorTests has its number. DetachedMountTests has the
    // mount in another namespace.
    let elsewhere = ["EDQUOT", "ENOTCONN"]
    let named = rows.dropFirst().filter { !$0[2].isEmpty && !elsewhere.contains($0[2]) }.map {
      "\($0[2]): \($0[1])"
    }
    let met = Set((Self.onAnyMount + Self.views + Self.states).map(\.error))
    #expect(Set(named) == Set(met.map { "\(System.name(of: $0)): \($0.description)" }))
    #expect(rows.allSatisfy { !$0[3].isEmpty })
  }
}
