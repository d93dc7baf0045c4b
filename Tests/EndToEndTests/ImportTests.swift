import Testing

/// `keyhole import` that is killed, that finds no room, or that meets what was made to break it.
@Suite(.timeLimit(.minutes(3))) struct ImportTests {
  /// 40 secrets and 8 suites of 10 keys.
  private static let fill = """
    { printf '{"keyhole":1,"defaults":{'; for s in 1 2 3 4 5 6 7 8; do [ $s = 1 ] || printf ,; printf '"suite%d":{' $s
      for k in 0 1 2 3 4 5 6 7 8 9; do [ $k = 0 ] || printf ,; printf '"k%d":{"type":"integer","value":%d}' $k $s; done; printf '}'; done
      printf '},"keychain":['; for i in $(seq 40); do [ $i = 1 ] || printf ,
      printf '{"class":"generic","attributes":{"service":"s","account":"a%d"},"value":"new%d"}' $i $i; done; printf ']}'; } > "$OUT/e"
    keyhole set defaults/suite1/k3 -- -7; keyhole set defaults/suite1/own 1; printf old | keyhole set keychain/generic/s/a2/value

    """
  /// `old` where nothing of it is there, `new` where all is.
  private static let state = """
    state() {
      case "$(keyhole ls defaults | wc -l) $(keyhole ls keychain/generic/s | wc -l) $(keyhole get defaults/suite1/k3) $(keyhole get keychain/generic/s/a2/value)" in
        "${OLD-1} 1 -7 old") echo old ;; "8 40 1 new2") echo new ;; *) echo "torn: $(keyhole ls defaults; keyhole ls keychain/generic/s)" ;;
      esac
      keyhole ls defaults/suite1 | grep -cx own
    }

    """

  @Test func aMissingFileIsThree() async throws {
    try await withWorld { world in
      try world.fails("keyhole import /nonexistent", status: 3)
    }
  }

  /// Whenever it is killed, the next command finds all of it or nothing, and what was there before.
  @Test func whatIsKilledIsWholeOrTakenBack() async throws {
    try await withWorld { world in
      try world.check(Self.fill)
      var seen: Set<String> = []
      for milliseconds in stride(from: 10, through: 400, by: 15) {
        let limit = "0.\(String(milliseconds + 1000).dropFirst())"
        let output = try world.sh(
          Self.state + """
            timeout -s KILL \(limit) keyhole import --replace "$OUT/e" > /dev/null 2>&1
            keyhole ls > /dev/null 2> "$OUT/said"; state; ls "$(dirname "$OUT")/state/keyhole" | grep -cx 'import.journal'
            """)
        let lines = output.text.split(separator: "\n").map(String.init)
        #expect(
          lines.count == 3 && ["old", "new"].contains(lines[0]) && lines[1...] == ["1", "0"], "\(output)")
        seen.insert(lines.first ?? "")
        if lines.first == "new" { break }
      }
      // However fast the machine is, one of them was early enough, and without a limit it is done.
      #expect(seen.contains("old"))
      try world.check("\(Self.state)keyhole import --replace \"$OUT/e\"; state", prints: "new\n1\n")
    }
  }

  /// RLIMIT_FSIZE stands for the disk: a file of the import can't become that long.
  @Test func whatFindsNoRoomIsTakenBack() async throws {
    try await withWorld { world in
      let output = try world.sh(
        Self.state + """
          OLD=2
          \(Self.fill)
          head -c 1000000 /dev/zero | tr '\\0' y | keyhole set defaults/suite8/own; cp "$CONFIG/suite8.plist" "$OUT/before"
          python3 - "$OUT/e" << 'EOF'
          import json, sys
          e = json.load(open(sys.argv[1])); e["defaults"]["suite8"]["large"] = {"type": "string", "value": "x" * 1000000}
          json.dump(e, open(sys.argv[1], "w"))
          EOF
          (trap '' XFSZ; ulimit -f 1500; keyhole import --replace "$OUT/e") 2> "$OUT/err"; echo $?; state; cmp "$CONFIG/suite8.plist" "$OUT/before"; cat "$OUT/err" >&2
          """)
      #expect(output.text == "1\nold\n1\n" && output.error.contains("nothing was imported"), "\(output)")
    }
  }

  /// The limit of locked memory of older systems, and secrets of the largest size.
  @Test(
    .enabled(
      if: ((try? System.text("/proc/swaps")) ?? "").split(separator: "\n").count < 2, "there is swap space"))
  func sixtyFourKibibytesOfLockedMemoryAreEnough() async throws {
    try await withWorld { world in
      try world.check(
        """
        for i in 1 2; do head -c 1000000 /dev/urandom | keyhole set keychain/generic/s/a$i/value; done
        other() { XDG_CONFIG_HOME="$OUT/c" XDG_DATA_HOME="$OUT/d" XDG_STATE_HOME="$OUT/s" keyhole "$@"; }
        mkdir -m 700 "$OUT/c" "$OUT/d" "$OUT/s"; ulimit -l 64
        echo pass | keyhole export --cost 14 -o "$OUT/sealed"; keyhole export --plain -o "$OUT/plain"
        echo pass | other import "$OUT/sealed"; other import -n "$OUT/plain" | cut -f 1 | sort | uniq -c | tr -s ' '
        other import -n < "$OUT/plain" | cut -f 1 | sort -u
        """, prints: " 2 same\nsame\n", within: .seconds(150))
    }
  }

  /// One line, whatever the file has in its names.
  @Test(arguments: ["\\033[2Jname,url", "$(head -c 100000 /dev/zero | tr '\\0' x)\\u202E,url"])
  func nothingOfAFileSteersTheTerminal(head: String) async throws {
    try await withWorld { world in
      let output = try world.sh(
        "printf \"\(head),password\\n1,2,3\\n\" > \"$OUT/t\"; keyhole import --format csv \"$OUT/t\"")
      #expect(output.status == 1 && output.error.utf8.count < 1_000, "\(output)")
      #expect(output.error.contains("\\u{") || output.error.contains("…"), "\(output)")
      #expect(
        !output.error.unicodeScalars.contains {
          $0 != "\n"
            && ($0.properties.generalCategory == .control || $0.properties.generalCategory == .format)
        })
    }
  }

  /// One secret that is damaged is named; the others are in the export.
  @Test func aDamagedSecretDoesNotStopAnExport() async throws {
    try await withWorld { world in
      try world.check(
        "printf 1 | keyhole set keychain/generic/s/a/value; printf 2 | keyhole set keychain/generic/s/b/value"
      )
      let output = try world.sh(
        """
        python3 - "$DATA/keyhole/vault.db" << 'EOF'
        import sqlite3, sys
        d = sqlite3.connect(sys.argv[1]); k = d.execute("select uuid from secret limit 1").fetchone()[0]
        d.execute("update secret set sealed = zeroblob(length(sealed)) where uuid = ?", (k,)); d.commit(); d.close()
        EOF
        keyhole export --plain -o "$OUT/e"; echo $?; grep -o '"value": "[12]"' "$OUT/e" | wc -l
        """)
      #expect(output.text == "1\n1\n" && output.error.contains("is damaged and was left out"), "\(output)")
    }
  }

  /// Rules of a folder hold for what an import replaces there.
  @Test func rulesOfFoldersHold() async throws {
    try await withWorld { world in
      try world.check(
        """
        printf one | keyhole set keychain/generic/s/a/value; keyhole export --plain -o "$OUT/e"; printf two | keyhole set keychain/generic/s/a/value
        keyhole attr keychain/generic/s keyhole.programs 'allow *' 2> /dev/null; keyhole import --replace "$OUT/e"; keyhole get keychain/generic/s/a/value
        """, prints: "one")
      let output = try world.sh(
        """
        printf x | keyhole set keychain/generic/t/a/value; keyhole export --plain -o "$OUT/e" keychain/generic/t; printf y | keyhole set keychain/generic/t/a/value
        keyhole attr keychain/generic/t keyhole.programs 'deny *'; keyhole import --replace "$OUT/e"
        """)
      #expect(output.status == 5 && output.error.contains("nothing was imported"), "\(output)")
    }
  }
}
