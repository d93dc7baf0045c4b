import Glibc
import Testing

/// Section 4: the file with an item's `otpauth:` URI, as programs and commands use it.
@Suite(.timeLimit(.minutes(10))) struct OtpauthTests {
  static let item = "keychain/generic/s/p"
  static let file = item + "/otpauth"
  static let uri = "otpauth://totp/s:p?secret=JBSWY3DPEHPK3PXP&issuer=s"
  static let other = "otpauth://totp/s:p?secret=JBSWY3DPEHPK3PXQ&issuer=s"

  private static func make(_ keyhole: MountedKeyhole) throws {
    try keyhole.check("mkdir -p \(item); echo secret > \(item)/value; echo '\(uri)' > \(file)")
  }

  @Test func toolsUseItAsAFile() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir -p \(Self.item); echo secret > \(Self.item)/value; ls \(Self.item)", prints: "value\n")
      try keyhole.refuses("cat \(Self.file)", .missing)
      try keyhole.refuses("echo text > \(Self.file)", .invalid)
      try keyhole.refuses("echo 'otpauth://totp/x?issuer=y' > \(Self.file)", .invalid)
      try Self.make(keyhole)
      try keyhole.check(
        "cat \(Self.file); echo; stat -c %s \(Self.file); ls \(Self.item); cat \(Self.item)/value",
        prints: "\(Self.uri)\n\(Self.uri.utf8.count)\notpauth\nvalue\nsecret")
      try keyhole.refuses("echo text > \(Self.file)", .invalid)
      try keyhole.refuses("rm \(Self.item)/value", .notPermitted)
      try keyhole.refuses("setfattr -n user.comment -v x \(Self.file)", .notSupported)
      try keyhole.check(
        """
        cp -a \(Self.item) keychain/generic/s/copy; cat keychain/generic/s/copy/otpauth; echo
        tar --xattrs -C keychain/generic/s -cf "$OUT/t" p; rm -r \(Self.item)
        tar --xattrs -C keychain/generic/s -xf "$OUT/t"; cat \(Self.item)/*; echo
        cat > "$OUT/new" <<< '\(Self.other)'; cp "$OUT/new" \(Self.item)/otpauth.new; mv \(Self.item)/otpauth.new \(Self.file)
        cat \(Self.file); echo; sed -i 's/PXQ/PXP/' \(Self.file); cat \(Self.file); echo
        touch -d @1000000000 \(Self.file); stat -c %Y \(Self.file)
        """,
        prints: "\(Self.uri)\n\(Self.uri)secret\n\(Self.other)\n\(Self.uri)\n1000000000\n")
      try keyhole.remount()
      try keyhole.check(
        """
        stat -c %Y \(Self.file); mv \(Self.item) keychain/generic/s/q; cat keychain/generic/s/q/otpauth; echo
        rm keychain/generic/s/q/otpauth; ls keychain/generic/s/q
        rm -r keychain/generic/s/copy; ls keychain/generic/s
        """, prints: "1000000000\n\(Self.uri)\nvalue\nq\n")
    }
  }

  @Test func commandsUseItWithAndWithoutAMount() async throws {
    try await withKeyhole { keyhole in
      for isMounted in [true, false] {
        try keyhole.world.check(
          """
          echo secret | keyhole set \(Self.item)/value; echo '\(Self.uri)' | keyhole set \(Self.file)
          keyhole get \(Self.file); echo; keyhole ls \(Self.item)
          printf '#!/bin/sh\\nsed -i s/PXP/PXQ/ "$1"\\n' > "$OUT/editor"; chmod +x "$OUT/editor"
          EDITOR="$OUT/editor" keyhole edit \(Self.file); keyhole get \(Self.file); echo
          keyhole doctor --secrets > /dev/null; keyhole rm \(Self.file); keyhole ls \(Self.item)
          """, prints: "\(Self.uri)\notpauth\nvalue\n\(Self.other)\nvalue\n", within: LockTests.patience)
        for command in [
          "echo text | keyhole set \(Self.file)", "keyhole set \(Self.file) '\(Self.uri)'",
          "echo '\(Self.uri)' | keyhole set keychain/generic/none/x/otpauth",
        ] {
          #expect(try keyhole.world.sh(command).status != 0)
        }
        try keyhole.world.check("keyhole ls keychain/generic", prints: "s\n")
        try keyhole.world.check("echo '\(Self.uri)' | keyhole set \(Self.file); keyhole rm -r \(Self.item)")
        if isMounted { try keyhole.unmount() }
      }
      try keyhole.start()
    }
  }

  @Test func flagsAskAboutEachOfTheTwo() async throws {
    try await AccessTests.withAsked("exit 0", "auth-reuse=10") { keyhole in
      try keyhole.check("echo '\(Self.uri)' > \(Self.file)")
      try keyhole.check("cat \(Self.file); echo; cat \(Self.item)/value", prints: "\(Self.uri)\nsecret")
      let asked = AccessTests.asked(keyhole).map { $0.split(separator: " ").first.map(String.init) ?? "" }
      #expect(asked == [Self.file, Self.file, Self.item], "\(asked)")
      try keyhole.check("keyhole log | grep -c '(otpauth)'", prints: "2\n")
    }
    try await AccessTests.withAsked("exit 1", flags: "") { keyhole in
      try keyhole.check(
        "echo '\(Self.uri)' > \(Self.file); setfattr -n user.keyhole.access -v devicePasscode \(Self.item)")
      try keyhole.refuses("cat \(Self.file)", .denied)
      try keyhole.refuses("echo '\(Self.other)' > \(Self.file)", .denied)
      try keyhole.check("ls -l \(Self.item) > /dev/null; rm \(Self.file); ls \(Self.item)", prints: "value\n")
    }
  }

  @Test func rulesHoldForIt() async throws {
    try await withKeyhole { keyhole in
      try Self.make(keyhole)
      try keyhole.check("setfattr -n user.keyhole.programs -v \"deny $(command -v cat)\" \(Self.item)")
      try keyhole.refuses("cat \(Self.file)", .denied)
      try keyhole.check("head -c 10 \(Self.file)", prints: "otpauth://")
    }
  }

  @Test func lockHoldsForIt() async throws {
    try await withKeyhole { keyhole in
      try Self.make(keyhole)
      try keyhole.check("keyhole lock")
      try keyhole.refuses("cat \(Self.file)", .noKey)
      try keyhole.refuses("echo '\(Self.other)' > \(Self.file)", .noKey)
      try keyhole.check("keyhole unlock < /dev/null; cat \(Self.file)", prints: Self.uri)
    }
  }

  /// One of the two is there, whenever the process is killed.
  @Test func killedWriterLeavesTheOldOrTheNewOne() async throws {
    try await withWorld { world in
      try world.check(
        "echo secret | keyhole set \(Self.item)/value; echo '\(Self.uri)' | keyhole set \(Self.file)")
      var seen: Set<String> = []
      for milliseconds in stride(from: 5, through: 400, by: 15) {
        let limit = "0.\(String(milliseconds + 1000).dropFirst())"
        let output = try world.sh(
          """
          echo '\(Self.other)' | timeout -s KILL \(limit) keyhole set \(Self.file) > /dev/null 2>&1
          keyhole get \(Self.item)/value; echo; keyhole get \(Self.file)
          """)
        let lines = output.text.split(separator: "\n").map(String.init)
        #expect(
          output.status == 0 && lines.count == 2 && lines[0] == "secret"
            && [Self.uri, Self.other].contains(lines[1]), "\(output)")
        seen.insert(lines.last ?? "")
        if lines.last == Self.other { break }
      }
      #expect(seen.contains(Self.uri))
    }
  }

  /// With the class of this device only, neither of an item's secrets is in a backup.
  @Test func backupsHoldItOrLeaveItOut() async throws {
    try await withWorld { world in
      try world.check(
        """
        for i in p local; do
          echo secret | keyhole set keychain/generic/s/$i/value; echo '\(Self.uri)' | keyhole set keychain/generic/s/$i/otpauth
        done
        keyhole attr keychain/generic/s/local keyhole.accessible whenUnlockedThisDeviceOnly
        keyhole backup --init > "$OUT/key" 2> /dev/null; keyhole backup "$OUT/b" > "$OUT/said"; grep -o 'left out: 1 item' "$OUT/said"
        export HOME=$OUT/new; mkdir -m 700 $HOME; unset XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_RUNTIME_DIR
        keyhole restore --yes "$OUT/b" < "$OUT/key" > /dev/null
        keyhole get \(Self.file); echo; keyhole ls keychain/generic/s; keyhole doctor --secrets > /dev/null && echo whole
        """, prints: "left out: 1 item\n\(Self.uri)\np\nwhole\n", within: LockTests.patience)
    }
  }
}
