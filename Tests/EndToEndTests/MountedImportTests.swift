import Glibc
import Testing

/// `keyhole import` into a vault that only the mount has unlocked: all of it or nothing.
@Suite(.timeLimit(.minutes(10))) struct MountedImportTests {
  private static func withVault(body: (MountedKeyhole) throws -> Void) async throws {
    try await withKeyhole { keyhole in
      try keyhole.check("mkdir -p keychain/generic/s/a2; printf old > keychain/generic/s/a2/value")
      try keyhole.world.check(
        "echo horse | keyhole passphrase --weak --cost 14 2> /dev/null; keyhole set defaults/suite1/k3 -- -7",
        within: LockTests.patience)
      try body(keyhole)
    }
  }

  /// 40 secrets and two suites.
  private static let file = """
    { printf '{"keyhole":1,"defaults":{"suite1":{"k3":{"type":"integer","value":1}},"suite2":{"k":{"type":"integer","value":1}}},"keychain":['
      for i in $(seq 40); do [ $i = 1 ] || printf ,
      printf '{"class":"generic","attributes":{"service":"s","account":"a%d"},"value":"new%d"}' $i $i; done; printf ']}'; } > "$OUT/e"

    """
  private static let state = """
    state() {
      case "$(keyhole ls defaults | wc -l) $(keyhole ls keychain/generic/s | wc -l) $(keyhole get defaults/suite1/k3) $(keyhole get keychain/generic/s/a2/value)" in
        "1 1 -7 old") echo old ;; "2 40 1 new2") echo new ;; *) echo "torn: $(keyhole ls defaults; keyhole ls keychain/generic/s)" ;;
      esac
    }

    """

  @Test func itIsOneTransaction() async throws {
    try await Self.withVault { keyhole in
      let output = try keyhole.world.sh(
        Self.state + Self.file + "keyhole import --replace \"$OUT/e\"; state", within: LockTests.patience)
      #expect(output.text == "new\n" && !output.error.contains("one at a time"), "\(output)")
      try keyhole.check("cat keychain/generic/s/a40/value", prints: "new40")
    }
  }

  /// Whenever it is killed, the next command finds all of it or nothing: what is replaced too.
  @Test func whatIsKilledIsWholeOrTakenBack() async throws {
    try await Self.withVault { keyhole in
      try keyhole.world.check(Self.file)
      var seen: Set<String> = []
      for milliseconds in stride(from: 20, through: 900, by: 30) {
        let limit = "0.\(String(milliseconds + 1000).dropFirst())"
        let output = try keyhole.world.sh(
          Self.state + """
            timeout -s KILL \(limit) keyhole import --replace "$OUT/e" > /dev/null 2>&1
            keyhole ls > /dev/null 2>&1; state; ls "$(dirname "$OUT")/state/keyhole" | grep -cx 'import.journal'
            """)
        let lines = output.text.split(separator: "\n").map(String.init)
        #expect(lines.count == 2 && ["old", "new"].contains(lines[0]) && lines[1] == "0", "\(output)")
        seen.insert(lines.first ?? "")
        if lines.first == "new" { break }
      }
      #expect(seen.contains("old"))
      try keyhole.world.check(
        "\(Self.state)keyhole import --replace \"$OUT/e\"; state", prints: "new\n", within: LockTests.patience
      )
    }
  }

  /// The mount is killed in the middle: with the next one, it is whole or gone.
  @Test func aMountThatIsKilledLeavesAllOrNothing() async throws {
    try await Self.withVault { keyhole in
      let world = keyhole.world
      try world.check(Self.file)
      let importing = try world.launch("exec keyhole import --replace \"$OUT/e\" 2>&1")
      try keyhole.crash()
      _ = try importing.finish(within: LockTests.patience)
      try world.check("echo horse | keyhole unlock", within: LockTests.patience)
      let output = try world.sh(Self.state + "keyhole ls > /dev/null 2>&1; state")
      #expect(["old\n", "new\n"].contains(output.text), "\(output)")
    }
  }

  @Test func aMountThatIsLockedTakesNothing() async throws {
    try await Self.withVault { keyhole in
      let output = try keyhole.world.sh(
        Self.state + Self.file + """
          keyhole lock; keyhole import --replace "$OUT/e"; echo $?; keyhole ls defaults; echo horse | keyhole unlock; state
          """, within: LockTests.patience)
      #expect(output.text == "4\nsuite1\nold\n" && output.error.contains("locked"), "\(output)")
    }
  }

  /// The limit of locked memory of older systems for the mount and for the commands, and a secret of the largest size.
  @Test(
    .enabled(
      if: ((try? System.text("/proc/swaps")) ?? "").split(separator: "\n").count < 2, "there is swap space"))
  func sixtyFourKibibytesOfLockedMemoryAreEnough() async throws {
    let rights = Privileges.isRoot ? "setpriv --bounding-set=-ipc_lock" : ""
    let launcher = ["/bin/bash", "-c", "ulimit -l 64; exec \(rights) \"$@\"", "bash"]
    try await withKeyhole(launcher: launcher) { keyhole in
      let world = keyhole.world
      try keyhole.check("mkdir -p keychain/generic/s/a; printf x > keychain/generic/s/a/value")
      try world.check(
        "echo horse | keyhole passphrase --weak --cost 14 2> /dev/null", within: LockTests.patience)
      try world.check(
        """
        cat > "$OUT/big.py" << 'EOF'
        import json, sys
        def item(service, account, value): return {"class": "generic", "attributes": {"service": service, "account": account}, "value": value}
        items = [item("n", f"a{i}", f"secret {i}") for i in range(500)] + [item("big", "b", "x" * (1 << 20))]
        if len(sys.argv) < 2: json.dump({"keyhole": 1, "defaults": {}, "keychain": items}, sys.stdout)
        else: print(sorted(i["value"] for i in json.load(open(sys.argv[1]))["keychain"]) == sorted(i["value"] for i in items))
        EOF
        python3 "$OUT/big.py" > "$OUT/e"; ulimit -l 64; LIMITED='\(rights)'
        $LIMITED keyhole import "$OUT/e"; echo pass | $LIMITED keyhole export --cost 14 -o "$OUT/sealed" keychain/generic/n keychain/generic/big
        keyhole rm -r --yes keychain/generic/n; keyhole rm -r --yes keychain/generic/big
        echo pass | $LIMITED keyhole import "$OUT/sealed"; $LIMITED keyhole export --plain -o "$OUT/plain" keychain/generic/n keychain/generic/big
        python3 "$OUT/big.py" "$OUT/plain"
        head -c 1048576 /dev/zero | tr '\\0' x > "$OUT/x"; $LIMITED keyhole set keychain/generic/big/c/value < "$OUT/x"
        $LIMITED keyhole get keychain/generic/big/c/value | cmp - "$OUT/x" && echo same
        """, prints: "True\nsame\n", within: .seconds(200))
    }
  }
}
