import Glibc
import Testing

/// Section 6, as far as one item's directory and the tools' ways to replace a file go.
@Suite(.timeLimit(.minutes(1))) struct ScratchTests {
  static let before = """
    mkdir defaults/s; echo one > defaults/s/k; echo 42 > defaults/s/i
    mkdir -p keychain/generic/s/p; echo one > keychain/generic/s/p/value
    setfattr -n user.comment -v note keychain/generic/s/p; setfattr -n user.keyhole.created -v 2020-01-02T03:04:05Z keychain/generic/s/p
    """

  /// Ways to save: in each, `$F` is the file, and `two` becomes its value.
  static let saves: [(name: String, script: String)] = [
    ("in place", "echo two > $F"),
    ("sed -i", "sed -i s/one/two/ $F"),
    ("perl -i", "perl -pi -e s/one/two/ $F"),
    ("mv over", "echo two > .tmp; mv .tmp $F"),
    ("mv from outside", "echo two > \"$OUT/new\"; mv \"$OUT/new\" $F"),
    ("vim renaming away", "mv $F $F~; echo two > $F; rm $F~"),
    ("vim copying", "cp $F $F~; echo two > $F; rm $F~"),
    (
      "vim's swap and probe",
      "echo swap > .$F.swp; echo > 4913; rm 4913; mv $F $F~; echo two > $F; rm $F~ .$F.swp"
    ),
    ("emacs", "ln -s me@host .#$F; echo auto > \"#$F#\"; mv $F $F~; echo two > $F; rm $F~ \"#$F#\" .#$F"),
    ("GLib", "echo two > .goutputstream-ABC123; mv .goutputstream-ABC123 $F"),
    ("rsync", "echo two > \"$OUT/$F\"; touch -d @1000000000 \"$OUT/$F\"; rsync -a \"$OUT/$F\" $F"),
    ("install", "echo two > \"$OUT/new\"; install -m 600 \"$OUT/new\" $F"),
    (
      "patch",
      """
      { printf '%s\\n' "--- $F" "+++ $F" '@@ -1 +1 @@' -one; printf '%s' "$N"; echo +two; printf '%s' "$N"; } > "$OUT/diff"
      patch -s $F < "$OUT/diff"
      """
    ),
    ("dd", "printf two | dd of=$F status=none"),
  ]

  /// Each in a suite and a service of its own, and all on one mount.
  @Test func savesKeepKeysAndItems() async throws {
    try await withKeyhole { keyhole in
      for (number, save) in Self.saves.enumerated() {
        let (suite, item) = ("defaults/s\(number)", "keychain/generic/s\(number)/p")
        let attributes =
          "for a in comment keyhole.created account service; do getfattr --only-values -n user.$a \(item); echo; done"
        try keyhole.check(
          """
          mkdir -p \(suite) \(item); echo one > \(suite)/k; echo one > \(item)/value
          setfattr -n user.comment -v note \(item); setfattr -n user.keyhole.created -v 2020-01-02T03:04:05Z \(item)
          """)
        // A secret of one line has no newline, and a patch has to say so.
        let script = "set -e; case $F in value) N=$'\\\\ No newline at end of file\\n';; esac; \(save.script)"
        try keyhole.check(
          "cd \(suite); F=k; \(script); cat k; getfattr --only-values -n user.keyhole.type k; ls -A",
          prints: "two\nstringk\n")
        try keyhole.check("cd \(item); F=value; \(script); cat value; ls -A", prints: "twovalue\n")
        try keyhole.check(attributes, prints: "note\n2020-01-02T03:04:05Z\np\ns\(number)\n")
      }
      try keyhole.remount()
      try keyhole.check(
        "cat defaults/s*/k keychain/generic/s*/p/value | sort | uniq -c | tr -s ' '; ls -A defaults/s* keychain/generic/s*/p | grep -v : | sort -u",
        // The secrets have no newlines.
        prints:
          " \(Self.saves.count) two\n 1 \(String(repeating: "two", count: Self.saves.count))\n\nk\nvalue\n"
      )
    }
  }

  @Test func typeIsKeptWhenAnotherFileReplacesAKey() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      try keyhole.check(
        "cd defaults/s; sed -i s/42/43/ i; cat i; getfattr --only-values -n user.keyhole.type i",
        prints: "43\ninteger")
      // Text that is no integer can't replace one, and the old value stays.
      try keyhole.refuses("cd defaults/s; sed -i s/43/text/ i", .invalid)
      try keyhole.check("cd defaults/s; echo text > .new; ! mv -f .new i 2> /dev/null")
      try keyhole.check("cd defaults/s; cat i; rm -f .new sed??????; ls -A", prints: "43\ni\nk\n")
    }
  }

  @Test func scratchLivesInMemoryAndGoesWithTheMount() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      try keyhole.check(
        """
        echo marker-scratch > keychain/generic/s/p/notes; echo marker-scratch > defaults/s/.k.swp; ln -s marker-scratch keychain/generic/s/p/lock
        cat keychain/generic/s/p/notes defaults/s/.k.swp; readlink keychain/generic/s/p/lock; ls -A keychain/generic/s/p defaults/s | wc -l
        grep -rl marker-scratch "$CONFIG" "$DATA" "$XDG_STATE_HOME" || true
        """, prints: "marker-scratch\nmarker-scratch\nmarker-scratch\n9\n")
      try keyhole.remount()
      try keyhole.check(
        "ls -A keychain/generic/s/p defaults/s",
        prints: "defaults/s:\ni\nk\n\nkeychain/generic/s/p:\nvalue\n")
    }
  }

  @Test func valueSetAsideIsBackAtUnmount() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      try keyhole.check(
        "cd defaults/s; mv k k~; ls -A; cat k~; cd \"$MOUNT/keychain/generic/s/p\"; mv value value~; ls -A; cat value~",
        prints: "i\nk~\none\nvalue~\none")
      // Everyone else still reads the old value.
      #expect(try SuiteFileTests.stored(keyhole, "s", "k") != nil)
      try keyhole.remount()
      try keyhole.check(
        "cat defaults/s/k keychain/generic/s/p/value; ls -A defaults/s", prints: "one\nonei\nk\n")
    }
  }
}
