import Testing

/// Sections 6 and 7: copies made with attributes, out and in again, are the same items and keys.
@Suite(.timeLimit(.minutes(1))) struct CopyTests {
  static let before = """
    mkdir defaults/app; cd defaults/app
    echo 'some text' > string; echo 42 > integer; echo 0.5 > real; echo true > bool; echo '[1]' > array; echo '{"a":1}' > dict
    echo 2026-11-21T07:53:00Z > date; printf '\\0\\1\\n' > data; echo x > number; setfattr -n user.keyhole.type -v string number; echo 007 > number
    echo 42 > text; setfattr -n user.keyhole.type -v string text; echo 5 > float; setfattr -n user.keyhole.type -v real float
    echo 1 > 'a%2Fb'; touch empty
    touch -d @1000000000 *
    cd "$MOUNT/keychain"; mkdir -p generic/s/p 'internet/h/p;protocol=ssh;port=22'
    printf 'line one\\nline two\\n' > generic/s/p/value; echo hunter2 > 'internet/h/p;protocol=ssh;port=22/value'
    cd generic/s/p; setfattr -n user.comment -v 'a comment' .; setfattr -n user.isInvisible -v true .; setfattr -n user.own -v x .
    setfattr -n user.keyhole.label -v Label .; setfattr -n user.keyhole.created -v 2020-01-02T03:04:05Z .; touch -d @1100000000 value
    """

  /// Names, contents, attributes and times of everything.
  static let picture = """
    find defaults keychain -type f | sort | while read -r f; do echo "== $f $(stat -c '%Y %s' "$f")"; od -An -c "$f"; getfattr -d "$f"; done
    find keychain -mindepth 3 -maxdepth 3 | sort | while read -r d; do getfattr -d "$d"; done
    """

  static let tools: [(name: String, out: String, back: String)] = [
    ("rsync", "rsync -aX defaults keychain \"$OUT/copy/\"", "rsync -aX \"$OUT/copy/\" ."),
    ("rsync in place", "rsync -aX defaults keychain \"$OUT/copy/\"", "rsync -aX --inplace \"$OUT/copy/\" ."),
    ("cp", "cp -a defaults keychain \"$OUT/copy/\"", "cp -a \"$OUT\"/copy/* ."),
    (
      "tar", "tar --xattrs --xattrs-include='*' -cf \"$OUT/copy/a.tar\" defaults keychain",
      "tar --xattrs --xattrs-include='*' -xf \"$OUT/copy/a.tar\""
    ),
  ]

  @Test(arguments: tools.map(\.name))
  func copyOutAndInIsTheSame(name: String) async throws {
    let tool = try #require(Self.tools.first { $0.name == name })
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      let before = try keyhole.sh(Self.picture)
      #expect(before.status == 0 && before.error == "")
      try keyhole.check("mkdir \"$OUT/copy\"; \(tool.out)")
      // Over what is there: nothing to change, and nothing to complain about.
      try keyhole.check(tool.back)
      #expect(try keyhole.sh(Self.picture) == before)
      // Into an empty tree.
      try keyhole.check("rm -r defaults/app keychain/*/*")
      try keyhole.check(tool.back)
      #expect(try keyhole.sh(Self.picture).text == before.text)
      // Over other values.
      try keyhole.check(
        "echo else > defaults/app/string; echo 1 > defaults/app/integer; echo else > keychain/generic/s/p/value; setfattr -n user.comment -v else keychain/generic/s/p"
      )
      try keyhole.check(tool.back)
      #expect(try keyhole.sh(Self.picture).text == before.text)
      try keyhole.remount()
      #expect(try keyhole.sh(Self.picture).text == before.text)
    }
  }

  @Test func propertyListIsTheSameAfterATripOfItsSuite() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(Self.before)
      let before = try System.text(keyhole.suiteFile("app"))
      try keyhole.check(
        "rsync -aX defaults/app/ \"$OUT/app/\"; rm -r defaults/app; mkdir defaults/app; rsync -aX \"$OUT/app/\" defaults/app/"
      )
      #expect(try System.text(keyhole.suiteFile("app")) == before)
    }
  }

  // MARK: Tools that change in place

  @Test func toolsThatWriteInPlaceWork() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        mkdir defaults/s; cd defaults/s; echo hello > k
        cp k l; cat l; install -m 600 k m; cat m; dd if=k of=n status=none; cat n; tee o < k > /dev/null; cat o
        echo b >> k; echo a >> k; sort -o k k; cat k; tail -n 1 k; head -c 3 k; wc -l < k; diff -r . "$MOUNT/defaults/s"; du -s . > /dev/null
        find . -newer "$OUT/missing" 2> /dev/null; grep -rl hello . | wc -l; truncate -s 1 k; cat k; rm -r "$MOUNT/defaults/s"
        """, prints: "hello\nhello\nhello\nhello\na\nb\nhello\nhello\na\nb3\n5\na\n")
    }
  }
}
