import Testing

/// `keyhole export` and `import`: formats, sealing, conflicts, all or nothing.
@Suite(.timeLimit(.minutes(2))) struct TransferTests {
  /// Something of every type, awkward names, and secrets that are no text.
  private static let fill = """
    keyhole set defaults/com.example.app/volume 11; keyhole set defaults/com.example.app/theme 'dark "x" \\ é'
    keyhole set defaults/s2/date 2026-11-21T07:53:00Z; keyhole set defaults/s2/list '["a",{"b":[1.5,true]}]'
    printf '\\0\\1' | keyhole set defaults/s2/bytes; keyhole set defaults/s2/real 0.5; keyhole set defaults/s2/not-one 007
    keyhole set defaults/s2/nan 1.0; keyhole set defaults/s2/nan nan; keyhole set defaults/s2/a%2Fb -- -1
    printf 'line 1\\nline 2\\t"<&>' | keyhole set defaults/s2/text; printf '' | keyhole set defaults/s2/empty
    printf hunter2 | keyhole set keychain/generic/my.service/peter/value
    keyhole attr keychain/generic/my.service/peter comment 'é "quoted" <&>'; keyhole attr keychain/generic/my.service/peter keyhole.label Mine
    printf 'a\\0b' | keyhole set 'keychain/internet/srv/x;protocol=ssh;port=22/value'
    printf -- '-----BEGIN-----\\nabc\\n' | keyhole set keychain/generic/pem/%/value
    head -c 20000 /dev/urandom | keyhole set keychain/generic/large/blob/value

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
          keyhole get keychain/generic/large/blob/value | cmp - <(other get keychain/generic/large/blob/value)
          other import -n "$OUT/export" | cut -f 1 | sort -u
          """, prints: "same\n")
    }
  }

  @Test(arguments: ["json", "plist", "tar", "env"])
  func secretsAreSealed(format: String) async throws {
    try await withWorld { world in
      try world.check(
        """
        printf hunter2 | keyhole set keychain/generic/my.service/peter/value
        """ + "\n" + Self.elsewhere + """
          echo 'a passphrase' | keyhole export keychain --format \(format) -o "$OUT/export"
          stat -c %a "$OUT/export"; grep -c 'hunter2\\|my.service\\|aHVudGVyMg' "$OUT/export"; head -c 8 "$OUT/export"; echo
          echo 'a passphrase' | other import \(format == "env" ? "--to keychain/generic/taken" : "") "$OUT/export"
          other get keychain/generic/\(format == "env" ? "taken/peter" : "my.service/peter")/value
          """, prints: "600\n0\nKHEXPORT\nhunter2")
    }
  }

  /// A header of 61 bytes, then pieces of 16,400; what was sealed is 70 KB.
  private static let damages =
    [4, 20, 61, 70, 16_461, 16_490].map { "head -c \($0) \"$OUT/e\"" }
    + [8, 9, 10, 12, 30, 16_470].map { "flip \($0)" }
    + ["head -c -1 \"$OUT/e\"", "{ head -c 61 \"$OUT/e\"; tail -c +16462 \"$OUT/e\"; }"]

  /// Cut off anywhere, or with any byte changed, nothing of it is taken.
  @Test(arguments: damages) func aDamagedSealIsRefused(damage: String) async throws {
    try await withWorld { world in
      try world.check(
        """
        flip() { head -c $1 "$OUT/e"; printf '\\377'; tail -c +$(($1 + 2)) "$OUT/e"; }
        head -c 70000 /dev/zero | tr '\\0' x | keyhole set keychain/generic/s/long/value
        echo pass | keyhole export --cost 14 -o "$OUT/e"; keyhole rm -r keychain/generic/s; \(damage) > "$OUT/bad"
        """)
      try world.fails("echo pass | keyhole import \"$OUT/bad\"", status: 1)
      try world.check("keyhole ls keychain/generic")
    }
  }

  @Test func anotherPassphraseOpensNothing() async throws {
    try await withWorld { world in
      try world.check(
        "echo x | keyhole set keychain/generic/s/a/value; echo pass | keyhole export --cost 14 -o \"$OUT/e\"")
      try world.fails("echo wrong | keyhole import \"$OUT/e\"", status: 1)
      try world.check("echo pass | keyhole import \"$OUT/e\"")
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
      try world.fails("keyhole export defaults/missing -o \"$OUT/e\"", status: 1)
      try world.check("ls -A \"$OUT\"")
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

  @Test func environmentFilesAreReadAsAShellReadsThem() async throws {
    try await withWorld { world in
      try world.check(
        """
        cat > "$OUT/.env" << 'EOF'
        # a comment with 'a quote
        PLAIN=value
        export SPACED = two words   # and a comment
        SINGLE='it'\\''s $HOME'
        DOUBLE="a\\nb \\"c\\""
        MULTI='line 1
        line 2'
        NUMBER=42
        ZIP=007
        EMPTY=
        EOF
        keyhole import --to defaults/env "$OUT/.env"
        for key in $(keyhole ls defaults/env); do printf '%s %s: ' $key $(keyhole attr defaults/env/$key keyhole.type); keyhole get defaults/env/$key; done; echo
        keyhole import --to keychain/generic/env "$OUT/.env"; keyhole get keychain/generic/env/SINGLE/value; echo
        keyhole export keychain/generic/env --plain --format env > "$OUT/out"; . "$OUT/out"; echo "$SINGLE|$MULTI|$NUMBER"
        keyhole import --to keychain/generic/again "$OUT/out"; keyhole export keychain/generic/again --plain --format env | diff "$OUT/out" -
        keyhole export keychain/generic/env --plain --format env --prefix | grep -c ^env_
        """,
        prints: """
          DOUBLE string: a
          b "c"
          EMPTY data: MULTI string: line 1
          line 2
          NUMBER integer: 42
          PLAIN string: value
          SINGLE string: it's $HOME
          SPACED string: two words
          ZIP string: 007

          it's $HOME
          it's $HOME|line 1
          line 2|42
          8

          """)
    }
  }

  @Test func keePassXMLIsTakenOver() async throws {
    try await withWorld { world in
      try world.check(
        """
        cat > "$OUT/k.xml" << 'EOF'
        <?xml version="1.0" encoding="utf-8" standalone="yes"?>
        <KeePassFile><Meta><RecycleBinUUID>QUJD</RecycleBinUUID></Meta><Root><Group><UUID>AAAA</UUID><Name>Database</Name>
        <Entry><UUID>x</UUID><String><Key>Title</Key><Value>Mail</Value></String><String><Key>UserName</Key><Value>peter</Value></String>
        <String><Key>Password</Key><Value ProtectInMemory="True">s&amp;cret &lt;1&gt;</Value></String><String><Key>URL</Key><Value>https://mail.example.com:8443/x</Value></String>
        <String><Key>Notes</Key><Value>a note</Value></String><String><Key>Pin</Key><Value ProtectInMemory="True">1234</Value></String><String><Key>color</Key><Value>red</Value></String>
        <History><Entry><String><Key>Title</Key><Value>Mail</Value></String><String><Key>Password</Key><Value>old</Value></String></Entry></History></Entry>
        <Group><UUID>BBBB</UUID><Name>Work</Name><Entry><String><Key>Title</Key><Value>Door</Value></String><String><Key>Password</Key><Value>5678</Value></String></Entry></Group>
        <Group><UUID>QUJD</UUID><Name>Bin</Name><Entry><String><Key>Title</Key><Value>Gone</Value></String><String><Key>Password</Key><Value>x</Value></String></Entry></Group>
        </Group></Root></KeePassFile>
        EOF
        keyhole import -n "$OUT/k.xml"; keyhole import "$OUT/k.xml" 2> "$OUT/summary"; tail -c 56 "$OUT/summary"; I='keychain/internet/mail.example.com/peter;protocol=https;port=8443'
        keyhole get "$I/value"; echo; keyhole attr "$I" comment; keyhole attr "$I" keyhole.label; keyhole attr "$I" color
        P='keychain/internet/mail.example.com/peter%2FPin;protocol=https;port=8443'
        keyhole get "$P/value"; echo; keyhole attr "$P" belongsTo; keyhole attr keychain/generic/Door/% group
        """,
        prints: """
          new\tkeychain/internet/mail.example.com/peter;protocol=https;port=8443
          new\tkeychain/internet/mail.example.com/peter%2FPin;protocol=https;port=8443
          new\tkeychain/generic/Door/%
          left out\t1 earlier version of an entry
          left out\t1 entry of the recycle bin
          earlier version of an entry, 1 entry of the recycle bin
          s&cret <1>
          a note
          Mail
          red
          1234
          keychain/internet/mail.example.com/peter;protocol=https;port=8443
          Work

          """)
    }
  }

  @Test(arguments: [
    ("name,url,username,password,note\nSite,https://a.example/,me,\"p\"\"w,1\",n\n", "https", "p\"w,1"),
    (
      "\"url\",\"username\",\"password\",\"httpRealm\",\"formActionOrigin\",\"guid\",\"timeCreated\",\"timeLastUsed\",\"timePasswordChanged\"\r\n\"https://a.example\",\"me\",\"pw\",\"\",\"https://a.example\",\"{1}\",\"1700000000000\",\"1700000000000\",\"1700000001000\"\r\n",
      "https", "pw"
    ),
    (
      "\"Group\",\"Title\",\"Username\",\"Password\",\"URL\",\"Notes\",\"TOTP\",\"Icon\",\"Last Modified\",\"Created\"\n\"Root\",\"T\",\"me\",\"p\nw\",\"http://a.example\",\"\",\"\",\"0\",\"2026-11-21T07:53:00Z\",\"2026-11-21T07:53:00Z\"\n",
      "http", "p\nw"
    ),
  ])
  func tablesOfBrowsersAreTakenOver(table: String, scheme: String, password: String) async throws {
    try await withWorld { world in
      try world.check(
        "cat > \"$OUT/t.csv\"; keyhole import \"$OUT/t.csv\"; keyhole get 'keychain/internet/a.example/me;protocol=\(scheme)/value'",
        prints: password, sending: Array(table.utf8))
    }
  }

  @Test func aStoreOfPassIsTakenOver() async throws {
    try await withWorld { world in
      try world.check(
        """
        export GNUPGHOME="$OUT/g"; mkdir -m 700 "$GNUPGHOME"; mkdir -p "$OUT/store/Email/deep"
        gpg --batch --quiet --passphrase '' --quick-generate-key test@example.com default default never 2> /dev/null
        echo test@example.com > "$OUT/store/.gpg-id"
        enc() { gpg --batch --quiet --trust-model always -e -r test@example.com -o "$OUT/store/$1.gpg" 2> /dev/null; }
        printf 'pw1\\nuser: x\\nand more\\n' | enc Email/deep/zx2c4; printf pw2 | enc single
        keyhole import "$OUT/store" 2> "$OUT/err" || cat "$OUT/err"
        keyhole get keychain/generic/Email%2Fdeep/zx2c4/value; echo; keyhole attr keychain/generic/Email%2Fdeep/zx2c4 user
        keyhole get keychain/generic/Email%2Fdeep/zx2c4%2Fnotes/value
        keyhole import --to keychain/generic/all "$OUT/store"; keyhole ls keychain/generic/all
        keyhole get keychain/generic/single/%/value; gpgconf --kill all
        """,
        prints:
          "pw1\nx\nand more\nEmail%2Fdeep%2Fzx2c4\nEmail%2Fdeep%2Fzx2c4%2Fnotes\nsingle\npw2")
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
        keyhole import -n "$OUT/store"; keyhole import "$OUT/store"
        keyhole get keychain/generic/Email/zx2c4/value; echo; keyhole attr keychain/generic/Email/zx2c4 user
        keyhole get keychain/generic/Bank/%/value; gpgconf --kill all
        """,
        prints: """
          new\tkeychain/generic/Bank/%
          new\tkeychain/generic/Email/zx2c4
          pw1
          x
          pw2
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

  @Test func duplicatesAreNumberedMergedOrRefused() async throws {
    try await withWorld { world in
      let table =
        "name,url,username,password,note\nA,https://a.example/,me,1,\nB,https://a.example/x,me,2,\nC,https://b.example,me,3,\nD,https://b.example/y,me,3,n\n"
      try world.check("cat > \"$OUT/t\"", sending: Array(table.utf8))
      let refused = try world.sh("keyhole import --duplicates=refuse \"$OUT/t\"")
      #expect(refused.status == 1 && refused.error.contains("keychain/internet/a.example/me;protocol=https"))
      try world.check("keyhole ls keychain/internet")
      let numbered = try world.sh("keyhole import \"$OUT/t\"")
      #expect(
        numbered.status == 0 && numbered.error.contains("4 items were imported, 0 replaced, 2 numbered"))
      try world.check(
        "keyhole ls keychain/internet/a.example; keyhole get 'keychain/internet/a.example/me (2);protocol=https/value'; echo",
        prints: "me (2);protocol=https\nme;protocol=https\n2\n")
      try world.check("keyhole import -n \"$OUT/t\" | cut -f 1 | sort -u", prints: "same\n")
      try world.check("keyhole rm -r keychain/internet/a.example; keyhole rm -r keychain/internet/b.example")
      let merged = try world.sh("keyhole import --duplicates=merge \"$OUT/t\"")
      #expect(
        merged.status == 0 && merged.error.contains("3 items were imported, 0 replaced, 1 numbered, 1 merged")
      )
      try world.check(
        "keyhole attr 'keychain/internet/b.example/me;protocol=https' url-2", prints: "https://b.example/y\n")
    }
  }

  /// The second secret is larger than one may be: what was written before it is taken back.
  @Test func allOfItOrNothing() async throws {
    try await withWorld { world in
      let output = try world.sh(
        """
        keyhole set defaults/there/k 1; printf old | keyhole set keychain/generic/s/old/value
        { printf '{"keyhole":1,"defaults":{"new":{"k":{"type":"integer","value":1}},"there":{"k":{"type":"integer","value":2},"l":{"type":"bool","value":true}}},"keychain":['
          printf '{"class":"generic","attributes":{"service":"s","account":"a"},"value":"x"},{"class":"generic","attributes":{"service":"s","account":"old"},"value":"new"},'
          printf '{"class":"generic","attributes":{"service":"s","account":"b"},"value":"'; head -c 1100000 /dev/zero | tr '\\0' x; printf '"}]}'
        } > "$OUT/e"; keyhole import --replace "$OUT/e"
        """)
      #expect(
        output.status == 1 && output.error.contains("keychain/generic/s/b")
          && output.error.contains("nothing was imported"))
      try world.check(
        "keyhole ls defaults; keyhole ls defaults/there; keyhole get defaults/there/k; keyhole ls keychain/generic/s; keyhole get keychain/generic/s/old/value",
        prints: "there\nk\n1\nold\nold")
    }
  }

  @Test(arguments: [
    "{", "{}", "{\"keyhole\":2}",
    "{\"keyhole\":1,\"defaults\":{\"s\":{\"k\":{\"type\":\"integer\",\"value\":\"x\"}}}}",
    "{\"keyhole\":1,\"keychain\":[{\"class\":\"generic\",\"value\":\"x\"}]}", "{\"keyhole\":1,\"unknown\":1}",
    "{\"keyhole\":1,\"keychain\":[{\"class\":\"internet\",\"attributes\":{\"server\":\"s\",\"port\":\"99999\"},\"value\":\"x\"}]}",
    "{\"keyhole\":1,\"keychain\":[{\"class\":\"generic\",\"attributes\":{\"service\":\"s\",\"account\":\"a\",\"keyhole.access\":\"x\"},\"value\":\"x\"}]}",
    "{\"keyhole\":1,\"keychain\":[{\"class\":\"generic\",\"attributes\":{\"service\":\"s\",\"account\":\"a\"},\"value\":\"\\ud800\"}]}",
    "<plist><dict><key>keyhole</key><integer>1</integer><key>keychain</key><array>",
    "name,url,username,password,note\nA,b\n",
    "name,url,username,password,note\nA,\"b\n", "<KeePassFile><Root>", "nothing at all", "",
  ])
  func damageIsRefusedInOneLine(text: String) async throws {
    try await withWorld { world in
      let output = try world.sh(
        "cat > \"$OUT/e\"; keyhole import --to defaults/x \"$OUT/e\"", sending: Array(text.utf8))
      #expect(output.status == 1 && output.bytes.isEmpty, "\(output)")
      #expect(
        output.error.split(separator: "\n").count == 1 && output.error.hasPrefix("keyhole: "), "\(output)")
      try world.check("keyhole ls defaults; keyhole ls keychain/generic; keyhole ls keychain/internet")
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

  @Test func aTerminalIsShownHowFarItIs() async throws {
    try await withWorld { world in
      try world.check(
        "keyhole set defaults/s/a 1; keyhole set defaults/s/b 2; keyhole export -o \"$OUT/e\"; keyhole rm -r defaults/s"
      )
      let output = try world.sh("script -qec 'keyhole import \"$OUT/e\"' /dev/null < /dev/null")
      #expect(
        output.text.contains("2/2")
          && output.text.contains("2 settings and 0 items were imported, 0 replaced"))
      try world.check("keyhole rm -r defaults/s; keyhole import \"$OUT/e\"")
    }
  }
}
