import Testing

/// `keyhole export` and `import`: formats, sealing, conflicts, all or nothing.
@Suite(.timeLimit(.minutes(2))) struct TransferTests {
  /// Something of every type, awkward names, and secrets that are no text.
  private static let fill = """
    keyhole set defaults/com.example.app/volume 11; keyhole set defaults/com.example.app/theme 'dark "x" \\ é'
    keyhole set defaults/s2/date 2026-11-21T07:53:00Z; keyhole set defaults/s2/list '["a",{"b":[1.5,true]}]'
    printf '\\0\\1' | keyhole set defaults/s2/bytes; keyhole set defaults/s2/real 0.5; keyhole set defaults/s2/not-one 007
    keyhole set defaults/s2/nan 1.0; keyhole set defaults/s2/nan nan; keyhole set defaults/s2/a%2Fb -- -1
    printf 'line 1\\nline 2\\t"<&>' | keyhole set defaults/s2/text; keyhole set defaults/s2/empty ''
    printf hunter2 | keyhole set keychain/generic/my.service/peter/value
    keyhole attr keychain/generic/my.service/peter comment 'é "quoted" <&>'; keyhole attr keychain/generic/my.service/peter keyhole.label Mine
    printf 'a\\0b' | keyhole set 'keychain/internet/srv/x;protocol=ssh;port=22/value'
    printf -- '-----BEGIN-----\\nabc\\n' | keyhole set keychain/generic/pem/%/value
    head -c 20000 /dev/urandom | keyhole set keychain/generic/large/blob/value
    printf 'otpauth://totp/s:p?secret=JBSWY3DPEHPK3PXP&issuer=s' | keyhole set keychain/generic/my.service/peter/otpauth

    """

  /// A second set of stores, for what is taken over.
  private static let elsewhere = """
    other() { XDG_CONFIG_HOME="$OUT/c" XDG_DATA_HOME="$OUT/d" XDG_STATE_HOME="$OUT/s" XDG_RUNTIME_DIR="$OUT/r" keyhole "$@"; }
    mkdir -m 700 "$OUT/c" "$OUT/d" "$OUT/s" "$OUT/r"

    """

  @Test(arguments: ["json", "plist", "tar"])
  func anotherStoreIsTheSame(format: String) async throws {
    try await withWorld { world in
      try world.check(
        Self.fill + Self.elsewhere + """
          keyhole export --plain --format \(format) > "$OUT/export"; other import < "$OUT/export"
          keyhole export --plain | sha256sum > "$OUT/1"; other export --plain | sha256sum | diff "$OUT/1" -
          for key in $(keyhole ls defaults/s2); do
            [ "$(keyhole attr "defaults/s2/$key" keyhole.type)" = "$(other attr "defaults/s2/$key" keyhole.type)" ] || echo "$key"
            keyhole get "defaults/s2/$key" | cmp - <(other get "defaults/s2/$key")
          done
          keyhole get keychain/generic/my.service/peter/otpauth | cmp - <(other get keychain/generic/my.service/peter/otpauth)
          keyhole get keychain/generic/large/blob/value | cmp - <(other get keychain/generic/large/blob/value)
          other import -n "$OUT/export" | cut -f 1 | sort -u
          """, prints: "same\n")
    }
  }

  /// FormatsTests has each damage of the file, and each format.
  /// Nothing, or a whole document.
  @Test(arguments: ["json", "tar", "env"]) func plainExportOfARefusedSecretIsEmpty(format: String)
    async throws
  {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        for i in a b c; do mkdir -p keychain/generic/s/$i; echo secret$i > keychain/generic/s/$i/value; done
        setfattr -n user.keyhole.programs -v 'deny *' keychain/generic/s/b
        """)
      let export = try keyhole.world.sh("keyhole export --plain --format \(format) keychain/generic/s")
      #expect(export.status == 5 && export.text.isEmpty, "\(export)")
      #expect(export.error.contains("keychain/generic/s/b"), "\(export)")
    }
  }

  @Test func secretsAreSealedUnderThePassphrase() async throws {
    try await withWorld { world in
      try world.check(
        Self.elsewhere + """
          printf hunter2 | keyhole set keychain/generic/my.service/peter/value
          head -c 70000 /dev/zero | tr '\\0' x | keyhole set keychain/generic/long/%/value
          echo 'a passphrase' | keyhole export --cost 14 keychain -o "$OUT/export"
          stat -c %a "$OUT/export"; grep -c 'hunter2\\|my.service\\|aHVudGVyMg' "$OUT/export"; head -c 8 "$OUT/export"; echo
          echo wrong | other import "$OUT/export" 2> /dev/null; echo $?; head -c -1 "$OUT/export" > "$OUT/cut"
          echo 'a passphrase' | other import "$OUT/cut" 2> /dev/null; echo $?; other ls keychain/generic
          echo 'a passphrase' | other import "$OUT/export"; other get keychain/generic/my.service/peter/value
          """, prints: "600\n0\nKHEXPORT\n1\n1\nhunter2", within: LockTests.patience)
    }
  }

  @Test func anEmptyPassphraseIsRefused() async throws {
    try await withWorld { world in
      try world.check("echo x | keyhole set keychain/generic/s/a/value")
      try world.fails("echo | keyhole export -o \"$OUT/e\"", status: 1)
      try world.fails("echo x | keyhole export --cost 13 -o \"$OUT/e\"", status: 2)
      try world.fails("keyhole export -o \"$OUT/e\" < /dev/null", status: 1)
      try world.check("ls \"$OUT\"; keyhole export defaults < /dev/null | grep -c keyhole", prints: "1\n")
    }
  }

  @Test func aFormatThatCannotSayItLeavesNoFile() async throws {
    try await withWorld { world in
      try world.check(
        "printf '\\0' | keyhole set defaults/s/bytes; keyhole set defaults/s/a.b 1; keyhole set defaults/s/a-b 2"
      )
      try world.fails("keyhole export defaults/s/bytes --format env -o \"$OUT/e\"", status: 1)
      try world.fails("keyhole export defaults/s/a.b defaults/s/a-b --format env -o \"$OUT/e\"", status: 1)
      try world.fails("keyhole export defaults/missing -o \"$OUT/e\"", status: 3)
      try world.check("ls -A \"$OUT\"")
    }
  }

  /// A variable holds one value, and so the `otpauth:` URI is left out.
  @Test func aShellReadsTheVariables() async throws {
    try await withWorld { world in
      let output = try world.sh(
        """
        printf "it's \\$HOME" | keyhole set keychain/generic/env/SINGLE/value
        printf 'line 1\\nline 2' | keyhole set keychain/generic/env/MULTI/value
        printf 'otpauth://totp/s:p?secret=JBSWY3DPEHPK3PXP&issuer=s' | keyhole set keychain/generic/env/MULTI/otpauth
        keyhole export keychain/generic/env --plain --format env > "$OUT/out"; . "$OUT/out"; echo "$SINGLE|$MULTI"
        keyhole import --to keychain/generic/again "$OUT/out"
        keyhole export keychain/generic/again --plain --format env | diff "$OUT/out" -
        keyhole export keychain/generic/env --plain --format env --prefix 2> /dev/null | grep -c ^env_
        """)
      #expect(output.text == "it's $HOME|line 1\nline 2\n2\n", "\(output)")
      #expect(output.error.contains("keychain/generic/env/MULTI/otpauth: env has no"), "\(output)")
    }
  }

  // MARK: With the mount, with other programs

  @Test func tarUnpacksItIntoAMount() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        Self.fill + Self.elsewhere + """
          keyhole export --plain > "$OUT/before"; keyhole export --plain --format tar -o "$OUT/t"
          rm -r defaults/* keychain/generic/* keychain/internet/*; tar --xattrs --xattrs-include='user.*' -xf "$OUT/t"
          keyhole export --plain | diff "$OUT/before" - && tar --xattrs --format=pax -cf "$OUT/t2" defaults keychain && other import "$OUT/t2"
          other export --plain | diff "$OUT/before" -
          """)
    }
  }

  @Test func aListOfMacOSGoesIntoASuite() async throws {
    try await withWorld { world in
      try world.check(
        """
        cat > "$OUT/list" << 'EOF'
        <?xml version="1.0" encoding="UTF-8"?>
        <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
        <plist version="1.0">
        <dict>
          <key>AppleLanguages</key><array><string>de</string></array>
          <key>NSNavLastRoot</key><string>~/Docs</string><key>since</key><date>2026-11-21T07:53:00Z</date>
        </dict>
        </plist>
        EOF
        keyhole import --to defaults/com.apple.app "$OUT/list"; keyhole ls defaults/com.apple.app
        keyhole get defaults/com.apple.app/since
        keyhole export defaults/com.apple.app --format plist | keyhole import --to defaults/copy
        keyhole export defaults/copy --format plist | diff - <(keyhole export defaults/com.apple.app --format plist)
        """, prints: "AppleLanguages\nNSNavLastRoot\nsince\n2026-11-21T07:53:00Z\n")
      try world.fails("keyhole import \"$OUT/list\"", status: 1)
    }
  }

  // MARK: With what other tools really write

  @Test(.enabled(if: System.exists("/usr/bin/pass"), "pass is not installed."))
  func aStoreThatPassMadeIsTakenOver() async throws {
    try await withWorld { world in
      try world.check(
        """
        export GNUPGHOME="$OUT/g" PASSWORD_STORE_DIR="$OUT/store" PASSWORD_STORE_GPG_OPTS='--trust-model always'; mkdir -m 700 "$GNUPGHOME"
        gpg --batch --quiet --passphrase '' --quick-generate-key test@example.com default default never 2> /dev/null
        pass init test@example.com > /dev/null
        printf 'pw1\\nuser: x\\n' | pass insert -m Email/zx2c4 > /dev/null; printf 'pw2\\npw2\\n' | pass insert -f Bank > /dev/null
        printf 'pw3\\nand more\\n' | pass insert -m Email/deep/x > /dev/null
        keyhole import -n "$OUT/store"; keyhole import "$OUT/store"
        keyhole get keychain/generic/Email/zx2c4/value; echo; keyhole attr keychain/generic/Email/zx2c4 user
        keyhole get keychain/generic/Bank/%/value; echo; keyhole get keychain/generic/Email%2Fdeep/x%2Fnotes/value
        keyhole import --to keychain/generic/all "$OUT/store"; keyhole ls keychain/generic/all; gpgconf --kill all
        """,
        prints: """
          new\tkeychain/generic/Bank/%
          new\tkeychain/generic/Email%2Fdeep/x
          new\tkeychain/generic/Email%2Fdeep/x%2Fnotes
          new\tkeychain/generic/Email/zx2c4
          pw1
          x
          pw2
          and more
          Bank
          Email%2Fdeep%2Fx
          Email%2Fdeep%2Fx%2Fnotes
          Email%2Fzx2c4

          """)
    }
  }

  @Test(
    .enabled(if: System.exists("/usr/bin/keepassxc-cli"), "keepassxc is not installed."),
    arguments: ["xml", "csv"])
  func aDatabaseThatKeePassXCWroteIsTakenOver(format: String) async throws {
    try await withWorld { world in
      try world.check(
        """
        export QT_QPA_PLATFORM=offscreen; kp() { keepassxc-cli "$@" > /dev/null 2>> "$OUT/err" || cat "$OUT/err"; }
        printf 'pass\\npass\\n' | kp db-create -q -p -t 100 "$OUT/k.kdbx"
        printf 'pass\\n' | kp mkdir -q "$OUT/k.kdbx" Work
        printf 'pass\\np,"w&<1>\\n' | kp add -q -p -u peter --url https://mail.example.com:8443/x --notes 'a, note' "$OUT/k.kdbx" Mail
        printf 'pass\\n5678\\n' | kp add -q -p "$OUT/k.kdbx" Work/Door
        printf 'pass\\n' | keepassxc-cli export -q -f \(format) "$OUT/k.kdbx" > "$OUT/k" 2>> "$OUT/err" || cat "$OUT/err"
        keyhole import -n "$OUT/k" | LC_ALL=C sort; keyhole import "$OUT/k"; I='keychain/internet/mail.example.com/peter;protocol=https;port=8443'
        keyhole get "$I/value"; echo; keyhole attr "$I" comment; keyhole attr "$I" keyhole.label; keyhole get keychain/generic/Door/%/value
        """,
        prints: """
          new\tkeychain/generic/Door/%
          new\tkeychain/internet/mail.example.com/peter;protocol=https;port=8443
          p,"w&<1>
          a, note
          Mail
          5678
          """)
    }
  }

  // MARK: What is there already

  @Test func anotherValueIsAConflictUntilItIsDecided() async throws {
    try await withWorld { world in
      try world.check(
        """
        keyhole set defaults/s/k 1; keyhole set defaults/s/same 5; printf one | keyhole set keychain/generic/s/a/value; keyhole export --plain -o "$OUT/e"
        keyhole set defaults/s/k 2; printf two | keyhole set keychain/generic/s/a/value; keyhole rm defaults/s/same
        """)
      try world.fails("keyhole import \"$OUT/e\"", status: 1)
      let dry = try world.sh("keyhole import -n \"$OUT/e\"")
      #expect(
        dry.status == 1
          && dry.text == "conflict\tdefaults/s/k\nnew\tdefaults/s/same\nconflict\tkeychain/generic/s/a\n")
      let show =
        "keyhole ls defaults/s; keyhole get defaults/s/k; keyhole get keychain/generic/s/a/value; echo"
      try world.check(show, prints: "k\n2\ntwo\n")
      try world.check("keyhole import --keep \"$OUT/e\"; \(show)", prints: "k\nsame\n2\ntwo\n")
      try world.check("keyhole import --replace \"$OUT/e\"; \(show)", prints: "k\nsame\n1\none\n")
    }
  }

  @Test func duplicatesAreCountedAndNamed() async throws {
    try await withWorld { world in
      let table = "name,url,username,password,note\nA,https://a.example/,me,1,\nB,https://a.example/x,me,2,\n"
      try world.check("cat > \"$OUT/t\"", sending: Array(table.utf8))
      let refused = try world.sh("keyhole import --duplicates=refuse \"$OUT/t\"")
      #expect(refused.status == 1 && refused.error.contains("keychain/internet/a.example/me;protocol=https"))
      let numbered = try world.sh("keyhole import \"$OUT/t\"; keyhole ls keychain/internet/a.example")
      #expect(numbered.text == "me (2);protocol=https\nme;protocol=https\n", "\(numbered)")
      #expect(numbered.error.contains("2 items were imported, 0 replaced, 1 numbered"), "\(numbered)")
    }
  }

  /// ImportFormatTests has the damages of each format.
  @Test(arguments: ["{", "nothing at all", ""]) func damageIsRefusedInOneLine(text: String) async throws {
    try await withWorld { world in
      let output = try world.sh(
        "cat > \"$OUT/e\"; keyhole import --to defaults/x \"$OUT/e\"", sending: Array(text.utf8))
      #expect(output.status == 1 && output.bytes.isEmpty, "\(output)")
      #expect(
        output.error.split(separator: "\n").count == 1 && output.error.hasPrefix("keyhole: "), "\(output)")
      try world.check("keyhole ls defaults")
    }
  }

  @Test func contradictionsAreUsageErrors() async throws {
    try await withWorld { world in
      let commands = [
        "import --keep --replace x", "import --to keychain/internet/x y", "import --to x y",
        "import --format nonsense x", "export --format nonsense",
      ]
      for command in commands {
        let output = try world.sh("keyhole \(command)")
        #expect(output.status == 2, "\(command)")
      }
    }
  }

  @Test func aTerminalIsShownWhatWasImported() async throws {
    try await withWorld { world in
      try world.check(
        "keyhole set defaults/s/a 1; keyhole set defaults/s/b 2; keyhole export -o \"$OUT/e\"; keyhole rm -r --yes defaults/s"
      )
      let output = try world.sh("script -qec 'keyhole import \"$OUT/e\"' /dev/null < /dev/null")
      #expect(output.text.contains("2 settings and 0 items were imported, 0 replaced"))
      try world.check("keyhole rm -r --yes defaults/s; keyhole import \"$OUT/e\"")
    }
  }
}
