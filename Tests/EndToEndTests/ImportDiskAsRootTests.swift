import Testing

/// `keyhole import` and `keyhole export` of a user without root's rights, on disks without room: all or nothing.
@Suite(.timeLimit(.minutes(5)), .enabled(if: Privileges.isRoot, "Only root can mount small disks."))
struct ImportDiskAsRootTests {
  /// Three suites of 100 KB, and 60 secrets of 60 KB, for which the room that a vault sets aside does not do; before them, a
  /// suite and an item.
  private static let fill = """
    python3 - << 'EOF' > ~/e
    import json, sys
    suites = {f"suite{s}": {"k": {"type": "string", "value": "x" * 100000}} for s in (1, 2, 3)}
    items = [{"class": "generic", "attributes": {"service": "s", "account": f"a{i}"}, "value": "new" + "y" * 60000} for i in range(60)]
    json.dump({"keyhole": 1, "defaults": suites, "keychain": items}, sys.stdout)
    EOF
    keyhole set defaults/suite1/k old; keyhole set defaults/suite1/own 1; printf old | keyhole set keychain/generic/s/a2/value

    """
  /// `old` where nothing of the import is there, `new` where all is; then what is left beside the stores.
  private static let state = """
    state() {
      case "$(keyhole ls defaults | wc -l) $(keyhole ls keychain/generic/s | wc -l) $(keyhole get defaults/suite1/k | head -c 3) $(keyhole get keychain/generic/s/a2/value | head -c 3)" in
        "1 1 old old") echo old ;; "3 60 xxx new") echo new ;; *) echo "torn: $(keyhole ls defaults; keyhole ls keychain/generic/s)" ;;
      esac
      find ~/.config ~/.local -name 'import.journal*' -o -name '.keyhole-*.tmp' -o -name '*.tmp' -o -name 'vault.batch*'
    }

    """

  /// Leaves so many KiB of a disk.
  private static func leave(_ kibibytes: Int, on folder: String) -> String {
    "cat /dev/zero > \(folder)/filler 2> /dev/null; truncate -s -\(kibibytes * 1024) \(folder)/filler"
  }

  private static func withDisk(
    _ folder: String, _ megabytes: Int, body: (Machine) throws -> Void
  ) async throws {
    try await withMachine { machine in
      try machine.check(
        as: .root,
        """
        cd ~anna && mkdir -p .config .local/share .local/state out && chown -R anna: .config .local out && chmod 700 .config .local .local/* out
        mount -t tmpfs -o size=\(megabytes)m,mode=700,uid=4001,gid=4001 tmpfs ~anna/\(folder)
        """)
      try body(machine)
    }
  }

  /// The journal, the second and the third suite, the vault's transaction: each finds no room in turn.
  @Test(arguments: [
    (".local/state", 0), (".local/state", 120), (".config", 0), (".config", 150), (".config", 260),
    (".local/share", 0), (".local/share", 200), (".local/share", 3000),
  ])
  func withoutRoomNothingIsImported(folder: String, left: Int) async throws {
    try await Self.withDisk(folder, 24) { machine in
      try machine.check(
        as: .anna,
        Self.fill + Self.state + """
          \(Self.leave(left, on: "~/" + folder))
          keyhole import --replace ~/e 2> ~/err; status=$?; state
          grep -q 'nothing was imported' ~/err && grep -q 'room\\|space' ~/err || cat ~/err; echo $status
          rm ~/\(folder)/filler; keyhole import --replace ~/e && state
          """,
        prints: "old\n1\nnew\n", within: .seconds(120))
    }
  }

  /// All stores on one disk, which is full a little later each time.
  @Test func whereverTheDiskIsFullItIsAllOrNothing() async throws {
    try await Self.withDisk(".", 40) { machine in
      try machine.check(as: .root, "chown anna: ~anna && chmod 700 ~anna")
      try machine.check(
        as: .anna,
        Self.fill + Self.state + """
          for left in $(seq 0 3600 24000); do
            \(Self.leave(0, on: "~")); truncate -s -$(($left * 1024)) ~/filler
            keyhole import --replace ~/e 2> /dev/null; status=$?; rm ~/filler; keyhole ls > /dev/null 2>&1
            echo "$(state) $status"
            [ $status != 0 ] || break
          done | sort -u
          """,
        prints: "new 0\nold 1\n", within: .seconds(240))
    }
  }

  /// The mount's process keeps the items of an import on the vault's disk.
  @Test(arguments: [0, 300, 5000]) func aMountsVaultWithoutRoomTakesNothing(left: Int) async throws {
    try await Self.withDisk(".local/share", 24) { machine in
      try machine.check(
        as: .anna,
        Self.fill + Self.state + """
          keyhole mount; echo horse | keyhole passphrase --weak --cost 14 2> /dev/null
          \(Self.leave(left, on: "~/.local/share"))
          keyhole import --replace ~/e 2> ~/err; status=$?; state
          grep -q 'nothing was imported' ~/err && grep -q 'room\\|space' ~/err || cat ~/err; echo $status
          rm ~/.local/share/filler; keyhole import --replace ~/e && state; cat ~/Keyhole/keychain/generic/s/a59/value | head -c 3
          echo; keyhole unmount
          """,
        prints: "old\n1\nnew\nnew\n", within: .seconds(120))
    }
  }

  @Test(arguments: [0, 100]) func anExportWithoutRoomLeavesNothing(left: Int) async throws {
    try await Self.withDisk("out", 2) { machine in
      try machine.check(
        as: .anna,
        Self.fill + """
          keyhole import --replace ~/e; echo before > ~/out/there; \(Self.leave(left, on: "~/out"))
          for target in new there; do
            keyhole export --plain -o ~/out/$target 2> ~/err; echo $?; grep -q 'space\\|room' ~/err || cat ~/err
            echo pass | keyhole export --cost 14 -o ~/out/$target 2> ~/err; echo $?; grep -q 'space\\|room' ~/err || cat ~/err
          done
          ls -A ~/out; cat ~/out/there
          """,
        prints: "1\n1\n1\n1\nfiller\nthere\nbefore\n", within: .seconds(120))
    }
  }
}
