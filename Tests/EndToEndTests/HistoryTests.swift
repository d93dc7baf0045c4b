import Glibc
import Testing

/// Sections 8 and 10: versions of secrets, as files and by commands.
@Suite(.timeLimit(.minutes(10))) struct HistoryTests {
  private static let item = "keychain/generic/s/p"
  private static let value = item + "/value"
  private static let history = ".keyhole/history/" + item

  private static func make(_ keyhole: MountedKeyhole) throws {
    try keyhole.check("mkdir -p \(item); echo one > \(value)")
  }

  @Test func versionsAreFilesThatCanOnlyBeRead() async throws {
    try await withKeyhole { keyhole in
      try Self.make(keyhole)
      try keyhole.refuses("ls \(Self.history)", .missing)
      try keyhole.check(
        "ls .keyhole/history/keychain/generic; ls -a . | grep -c keyhole; true", prints: "0\n")
      try keyhole.check(
        """
        setfattr -n user.comment -v first \(Self.item); touch -d @1000000000 \(Self.value); echo two > \(Self.value)
        echo three > \(Self.value); ls \(Self.history) | wc -l; ls .keyhole/history/keychain/generic/s
        for version in $(ls \(Self.history) | sort -n); do cat \(Self.history)/$version; echo; done
        last=\(Self.history)/$(ls \(Self.history) | sort -n | tail -1); stat -c %s $last
        getfattr --only-values -n user.comment $last; echo
        [ $(stat -c %Y $last) -gt 1000000001 ] && echo recent
        """, prints: "3\np\none\none\ntwo\n3\nfirst\nrecent\n")
      let last = "\(Self.history)/$(ls \(Self.history) | tail -1)"
      try keyhole.refuses("echo x > \(last)", .denied)
      try keyhole.refuses("rm \(last)", .notPermitted)
      try keyhole.refuses("rmdir \(Self.history)", .notPermitted)
      try keyhole.refuses("cat \(Self.history)/7777777", .missing)
      try keyhole.refuses("cat \(Self.history)/01", .missing)
      try keyhole.refuses("mkdir \(Self.history)/x", .notPermitted)
      try keyhole.check("rm -r \(Self.item); ls \(Self.history) | wc -l", prints: "4\n")
      try keyhole.crash()
      try keyhole.check("cat \(Self.history)/$(ls \(Self.history) | sort -n | tail -1)", prints: "three")
    }
  }

  /// An undo weakens no protection: a version that would change nothing is passed by, and makes no version.
  @Test func anUndoThatChangesNothingKeepsTheHistory() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        printf one | keyhole set \(Self.item); printf two | keyhole set \(Self.item)
        keyhole attr \(Self.item) keyhole.accessible afterFirstUnlock; keyhole history \(Self.item) | cut -f 3
        keyhole undo -q \(Self.item); keyhole attr \(Self.item) keyhole.accessible; keyhole get \(Self.item); echo
        keyhole undo -q \(Self.item); keyhole get \(Self.item); echo
        keyhole undo -q \(Self.item); keyhole get \(Self.item); echo
        """, prints: "value\nprotection\nwhenUnlocked\ntwo\none\ntwo\n")
      try keyhole.check(
        """
        printf one | keyhole set \(Self.item)2; keyhole attr \(Self.item)2 keyhole.accessible afterFirstUnlock
        keyhole undo -q \(Self.item)2; keyhole history \(Self.item)2 | wc -l
        keyhole undo \(Self.item)2 2>&1 || echo $?
        number=$(keyhole history \(Self.item)2 | tail -1 | cut -f 1)
        keyhole undo \(Self.item)2 $number 2>&1 | grep -c 'nothing was changed'; keyhole history \(Self.item)2 | wc -l
        """,
        prints: """
          2
          keyhole: \(Self.item)2: no earlier version differs from what it is, as an undo weakens no protection; nothing was changed
          3
          1
          2

          """)
    }
  }

  /// A misspelt name is an error; one that is there and has no version is none, nor one that was removed.
  @Test func namesThatNeverWereAreNotFound() async throws {
    try await withKeyhole { keyhole in
      try Self.make(keyhole)
      try keyhole.check(
        """
        echo x | keyhole set keychain/generic/s/other; keyhole set defaults/a/volume 1; keyhole history keychain/generic/s/other
        keyhole history defaults/a/volume; keyhole history keychain/generic; keyhole rm -q keychain/generic/s/other
        keyhole history keychain/generic/s/other | cut -f 3
        for path in keychain/generic/s/othre keychain/generic/s/othre/value keychain/generic/nowhere defaults/a/volmue views/none; do
          keyhole history $path 2>&1 || echo $?
        done
        keyhole history --purge keychain/generic/s/othre > /dev/null 2>&1 || echo $?
        """,
        prints: """
          removed
          keyhole: keychain/generic/s/othre: there is nothing of this name, and no earlier version of it; did you mean keychain/generic/s/other?
          3
          keyhole: keychain/generic/s/othre/value: there is nothing of this name, and no earlier version of it; did you mean keychain/generic/s/other?
          3
          keyhole: keychain/generic/nowhere: there is nothing of this name, and no earlier version of it
          3
          keyhole: defaults/a/volmue: there is nothing of this name, and no earlier version of it; did you mean defaults/a/volume?
          3
          keyhole: views/none: there is nothing of this name, and no earlier version of it
          3
          3

          """)
    }
  }

  /// Many items go in one transaction, and each is kept, with its `otpauth`.
  @Test(arguments: [true, false]) func manyAreRemovedTogether(isMounted: Bool) async throws {
    try await withKeyhole { keyhole in
      try Self.make(keyhole)
      try keyhole.world.check(
        """
        seq 300 | sed 's/.*/KEY_&=value-&/' > "$OUT/items.env"
        keyhole import --to keychain/generic/many "$OUT/items.env" > /dev/null
        echo 'otpauth://totp/a?secret=GEZDGNBVGY3TQOJQ' | keyhole set keychain/generic/many/KEY_7/otpauth
        """)
      if !isMounted { _ = try keyhole.unmount() }
      try keyhole.world.check(
        """
        keyhole rm -r --yes keychain/generic/many; keyhole ls keychain/generic | grep -c many; keyhole history keychain/generic/many | wc -l
        keyhole history keychain/generic/many/KEY_7 | cut -f 3 | tail -n 1; keyhole undo keychain/generic/many/KEY_7 > /dev/null
        keyhole get keychain/generic/many/KEY_7; echo; keyhole get keychain/generic/many/KEY_7/otpauth; echo
        keyhole rm -r --yes --purge keychain/generic/many; keyhole history | grep -c many; true
        """,
        prints: "0\n300\nremoved\nvalue-7\notpauth://totp/a?secret=GEZDGNBVGY3TQOJQ\n0\n")
    }
  }

  @Test func commandsListAndRestoreWithAndWithoutAMount() async throws {
    try await withKeyhole { keyhole in
      for isMounted in [true, false] {
        try keyhole.world.check(
          """
          for value in one two; do echo $value | keyhole set \(Self.value); done
          keyhole history \(Self.item) | cut -f 3; keyhole undo \(Self.item) > /dev/null; keyhole get \(Self.value); echo
          keyhole undo \(Self.value) | grep -c '^restored version'; keyhole get \(Self.value); echo
          keyhole history --json \(Self.item) | jq -r '.[].changes[0]' | sort | uniq -c | tr -s ' '
          keyhole rm -r \(Self.item); keyhole history; keyhole history --json keychain/generic/s
          keyhole undo \(Self.item) > /dev/null; keyhole get \(Self.value); echo
          number=$(keyhole history \(Self.item) | head -1 | cut -f 1)
          keyhole undo \(Self.item) $number > /dev/null; keyhole get \(Self.value); echo
          keyhole history --purge \(Self.item); keyhole history \(Self.item); keyhole rm -r --purge \(Self.item)
          keyhole history; keyhole undo \(Self.item) 2>&1; keyhole undo \(Self.item) 7 2>&1; echo $?
          """,
          prints: """
            value
            one
            1
            two
             3 value
            \(Self.item)
            [
              {"path": "\(Self.item)"}
            ]
            two
            one
            deleted 4 versions
            keyhole: \(Self.item): no earlier version of it is kept
            keyhole: \(Self.item): no earlier version of it is kept
            3

            """)
        if isMounted { try keyhole.unmount() }
      }
      try keyhole.start()
    }
  }

  /// `rm -r` and the command remove an item file by file.
  @Test func anItemComesBackWithItsOtpauth() async throws {
    try await withKeyhole { keyhole in
      let uri = "otpauth://totp/x?secret=JBSWY3DPEHPK3PXP"
      for removal in [
        "keyhole rm \(Self.item)", "keyhole rm -r --yes keychain/generic/s", "rm -r \(Self.item)",
        "rm \(Self.item)/otpauth \(Self.value)",
      ] {
        try keyhole.check(
          """
          printf one | keyhole set \(Self.value); printf '\(uri)' | keyhole otp --set \(Self.item)
          \(removal); keyhole undo \(Self.item) > /dev/null; keyhole get \(Self.value); echo; cat \(Self.item)/otpauth
          """, prints: "one\n\(uri)")
      }
      // One that was removed by itself, and is a version of its own.
      try keyhole.check(
        "rm \(Self.item)/otpauth; keyhole undo \(Self.item) > /dev/null; cat \(Self.item)/otpauth",
        prints: uri)
    }
  }

  @Test func aRemovalSaysHowLongItIsKept() async throws {
    try await withKeyhole { keyhole in
      try Self.make(keyhole)
      let terminal = "script -qec 'keyhole rm -r \(Self.item)' /dev/null"
      try keyhole.check(
        terminal,
        prints:
          "keyhole: note: kept for 30 days: `keyhole undo \(Self.item)` brings it back\r\n")
      try keyhole.check(
        "keyhole undo \(Self.item) > /dev/null; setfattr -n user.keyhole.history -v 0 \(Self.item)")
      try keyhole.check(terminal, prints: "keyhole: note: it is gone for good; nothing of it is kept\r\n")
      try keyhole.check("keyhole history")
    }
  }

  @Test func oneOfAThousandComesBack() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        for i in $(seq 1000); do mkdir -p keychain/generic/many/$i; echo value $i > keychain/generic/many/$i/value; done
        script -qec 'TERM=dumb keyhole rm -r --yes keychain/generic/many' /dev/null | tr -d '\\r'
        keyhole history keychain/generic/many | wc -l; ls keychain/generic/many
        keyhole undo keychain/generic/many/512 > /dev/null; keyhole get keychain/generic/many/512/value; echo
        until [ -e keychain/generic/many/512/value ]; do :; done; ls keychain/generic/many
        """,
        prints: """
          keyhole: note: 1000 items are kept for 30 days: `keyhole history keychain/generic/many` lists them, \
          `keyhole undo PATH` brings one back
          1000
          value 512
          512

          """, within: .seconds(300))
    }
  }

  @Test func aPassphraseClosesVersionsToo() async throws {
    try await withKeyhole { keyhole in
      try Self.make(keyhole)
      try keyhole.check(
        "echo two > \(Self.value); printf 'p\\n' | keyhole passphrase --weak 2> /dev/null",
        within: LockTests.patience)
      try keyhole.check("keyhole undo \(Self.item) > /dev/null; cat \(Self.value)", prints: "one")
      try keyhole.check(
        "keyhole lock; ls \(Self.history) | wc -l; keyhole history \(Self.item) | wc -l", prints: "2\n2\n")
      try keyhole.refuses("cat \(Self.history)/$(ls \(Self.history) | tail -1)", .noKey)
      try keyhole.check(
        "printf 'p\\n' | keyhole unlock; keyhole undo \(Self.item) > /dev/null; cat \(Self.value)",
        prints: "two",
        within: LockTests.patience)
      try keyhole.check(
        "keyhole rm -r \(Self.item); keyhole undo \(Self.item) > /dev/null; cat \(Self.value)", prints: "two")
      try keyhole.check("keyhole history --purge --all; keyhole history", prints: "deleted 3 versions\n")
    }
  }

  @Test func versionsAskAsTheirItemDoes() async throws {
    try await AccessTests.withAsked("exit 0", flags: "") { keyhole in
      let (item, value) = (AccessTests.item, AccessTests.value)
      try keyhole.check("echo new > \(value); setfattr -n user.keyhole.access -v devicePasscode \(item)")
      let before = AccessTests.asked(keyhole).count
      try keyhole.check(
        "cd .keyhole/history/\(item); stat -c %s * > /dev/null; cat $(ls | sort -n | head -1)",
        prints: "secret")
      #expect(AccessTests.asked(keyhole).count == before + 1)
      #expect(AccessTests.asked(keyhole).last?.hasPrefix(".keyhole/history/\(item)/") == true)
      try keyhole.check(
        "keyhole undo \(item) > /dev/null; getfattr --only-values -n user.keyhole.access \(item)",
        prints: "devicePasscode")
      #expect(AccessTests.asked(keyhole).count == before + 2)
    }
    try await AccessTests.withAsked("exit 1", flags: "devicePasscode") { keyhole in
      let item = AccessTests.item
      try keyhole.check("keyhole rm -r \(item)")
      try keyhole.refuses("cat .keyhole/history/\(item)/*", .denied)
      try keyhole.check("keyhole undo \(item) > /dev/null; ls \(item)", prints: "value\n")
      try keyhole.refuses("cat \(item)/value", .denied)
    }
  }

  private static func count(_ changes: Int) -> String {
    """
    for i in $(seq \(changes)); do echo $i | keyhole set \(value); keyhole set defaults/a/n $i; done
    keyhole history \(item) | wc -l; keyhole history defaults/a/n | wc -l
    """
  }

  @Test func settingsSayHowMuchIsKept() async throws {
    try await withKeyhole { keyhole in
      try Self.make(keyhole)
      try keyhole.check("keyhole config history 12; \(Self.count(14))", prints: "12\n12\n")
      // On a mount a change holds at once, and without one as well.
      try keyhole.check(
        "keyhole config history 11; echo x > \(Self.value); keyhole history \(Self.item) | wc -l",
        prints: "11\n")
      try keyhole.check(
        "rm defaults/keyhole/history; { \(Self.count(1)); } > /dev/null; keyhole history \(Self.item) | wc -l",
        prints: "10\n")
      try keyhole.unmount()
      try keyhole.world.check("keyhole config history 12; \(Self.count(4))", prints: "12\n12\n")
      for command in ["keyhole config history 0", "printf 9 | keyhole set defaults/keyhole/history"] {
        let refused = try keyhole.world.sh("setsid -w \(command)")
        #expect(refused.status == 5, "\(refused)")
      }
    }
  }

  /// The sealed settings hold for secrets, not for settings.
  @Test func lessThanTheDefaultTakesAPerson() async throws {
    try await withKeyhole("auth-command=/bin/true") { keyhole in
      try Self.make(keyhole)
      try keyhole.check("echo horse | keyhole passphrase --weak --cost 14 2> /dev/null")
      try keyhole.check("keyhole config history 2; \(Self.count(5))", prints: "2\n4\n")
      try keyhole.check("keyhole config | grep vault", prints: "history\t2\tvault\n")
      try keyhole.check(
        "keyhole config history 0; keyhole rm -q -r \(Self.item); keyhole history \(Self.item) 2> /dev/null || echo $?",
        prints: "3\n")
      #expect(
        try keyhole.sh("keyhole status").text.contains("history is 0 (vault, protects less than the default)")
      )
    }
  }

  @Test func optionsSayHowMuchIsKept() async throws {
    try await withKeyhole("history=2") { keyhole in
      try Self.make(keyhole)
      try keyhole.check(
        """
        for i in 1 2 3 4; do echo $i > \(Self.value); done; keyhole history \(Self.item) | wc -l
        for i in 5 6; do echo $i | keyhole set \(Self.value); done; keyhole history \(Self.item) | wc -l
        """, prints: "2\n2\n")
    }
    try await withKeyhole("history=0") { keyhole in
      try Self.make(keyhole)
      try keyhole.check(
        "echo two > \(Self.value); rm -r \(Self.item); keyhole history; ls .keyhole/history/keychain/generic")
    }
  }
}

extension HistoryTests {
  @Test func settingsHaveVersionsToo() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        for value in 1 2 3; do keyhole set defaults/a/volume $value; done; keyhole history defaults/a/volume | cut -f 3
        cat .keyhole/history/defaults/a/volume/*; keyhole undo defaults/a/volume > /dev/null; cat defaults/a/volume
        keyhole rm defaults/a/volume; keyhole history defaults; keyhole undo defaults/a/volume > /dev/null
        cat defaults/a/volume; script -qec 'keyhole rm -r --yes defaults/a' /dev/null | tr -d '\\r'
        keyhole undo defaults/a/volume > /dev/null; cat defaults/a/volume
        """,
        prints: """
          value
          value
          1
          2
          2
          defaults/a/volume
          2
          keyhole: note: kept for 30 days: `keyhole undo defaults/a/volume` brings it back
          2

          """)
      try keyhole.refuses("echo 1 > .keyhole/history/defaults/a/volume/1", .denied)
      try keyhole.refuses("cat .keyhole/history/defaults/b", .missing)
      try keyhole.check(
        """
        keyhole history --purge defaults/a/volume; keyhole history defaults; setfattr -n user.keyhole.history -v 0 defaults/a
        keyhole set defaults/a/volume 9; keyhole history defaults/a/volume; getfattr --only-values -n user.keyhole.history defaults/a
        setfattr -x user.keyhole.history defaults/a; keyhole set defaults/a/volume 10; keyhole history defaults/a/volume | wc -l
        """, prints: "deleted 4 versions\n01\n")
    }
  }

  /// Killed at any of its system calls: the key is there, or nothing of its value, whatever the mount notices.
  @Test func killedPurgeOfAKeyLeavesTheKeyOrNothingOfIt() async throws {
    try await withKeyhole { keyhole in
      let output = try keyhole.sh(
        """
        mkdir defaults/a
        for call in openat rename renameat2 unlink unlinkat fsync fdatasync write ftruncate; do
          case $call in openat) step=7 ;; *) step=1 ;; esac
          for n in $(seq 1 $step 300); do
          key=$call$n; keyhole set defaults/a/$key first; keyhole set defaults/a/$key secret-$key-
          strace -f -qq -o /dev/null -e trace=$call -e inject=$call:signal=KILL:when=$n \
            keyhole rm --purge defaults/a/$key > $OUT/log 2>&1; status=$?
          # The mount has noticed all before when it shows this.
          keyhole set defaults/a/other $key; until [ "$(cat defaults/a/other)" = $key ]; do :; done
          keyhole get defaults/a/$key > $OUT/log 2>&1 || {
            ! grep -rqa secret-$key- "$XDG_STATE_HOME" "$XDG_CONFIG_HOME" || echo "$call $n: something is left"; }
          [ $status != 0 ] || break
          echo $call >> $OUT/kills
        done; done
        wc -l < $OUT/kills
        """, within: .seconds(150))
      let kills = Int(output.text.split(separator: "\n").last ?? "") ?? 0
      #expect(kills > 5 && output.text == "\(kills)\n", "\(output)")
    }
  }

  /// The switch of a suite goes with its name.
  @Test func aSuiteWithoutHistoryIsRenamed() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        mkdir defaults/a; setfattr -n user.keyhole.history -v 0 defaults/a; keyhole set defaults/a/k secret-one
        keyhole mv defaults/a defaults/b; keyhole set defaults/b/k secret-two; mv defaults/b defaults/c; echo secret-three > defaults/c/k
        getfattr --only-values -n user.keyhole.history defaults/c; echo; keyhole history defaults
        rm -r defaults/c; ls "$XDG_STATE_HOME"/keyhole/history | grep -c off; grep -rl secret- "$XDG_STATE_HOME" || echo none
        """, prints: "0\n0\nnone\n")
    }
  }

  /// The former name of a key is no key of the suite any more, and its value is.
  @Test func purgeOfARenamedKeyNamesTheFormerOne() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        "mkdir defaults/a; keyhole set defaults/a/old secret-one; keyhole mv defaults/a/old defaults/a/new")
      let output = try keyhole.sh("keyhole rm --purge defaults/a/new")
      let command = "keyhole history --purge defaults/a/old"
      #expect(output.status == 0 && output.error.contains("`\(command)`"), "\(output)")
      try keyhole.check(
        "\(command); grep -rl secret-one \"$XDG_STATE_HOME\" || echo none",
        prints: "deleted 1 version\nnone\n")
    }
  }

  /// A last value that is too large is not kept, and an earlier one is.
  @Test func aNoteOnEarlierVersionsIsTrue() async throws {
    try await withWorld { world in
      try world.check(
        "keyhole set defaults/a/k first; head -c 70000 /dev/zero | tr '\\0' x | keyhole set defaults/a/k")
      let terminal = try Terminal(
        ["/bin/sh", "-c", "keyhole rm defaults/a/k 2>&1"], environment: world.environment,
        directory: world.outside, errors: world.outside + "/errors")
      let output = try terminal.finish()
      #expect(output.text.contains("`keyhole history --purge defaults/a/k`"), "\(output)")
      try world.check("keyhole history --purge defaults/a/k", prints: "deleted 1 version\n")
    }
  }

  /// Commands show in `.keyhole/history` what the mount shows there.
  @Test func commandsReadTheFilesOfVersions() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        for value in one two; do printf $value | keyhole set keychain/generic/s/p; done
        keyhole ls .keyhole/history; keyhole get .keyhole/history/keychain/generic/s/p/1; echo
        keyhole get "$MOUNT"/.keyhole/history/keychain/generic/s/p/1; echo
        keyhole get .keyhole/status | jq -r .mountpoint | sed "s|$MOUNT|MOUNT|"
        """, prints: "defaults\nkeychain\nviews\none\none\nMOUNT\n")
      try keyhole.unmount()
      let output = try keyhole.world.sh("keyhole get .keyhole/status")
      #expect(output.status == 3 && output.error.contains("no mount"), "\(output)")
    }
  }

  @Test func purgeOfAFolderLeavesNothingOfWhatIsOrWasThere() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        for suite in a b; do mkdir defaults/$suite; keyhole set defaults/$suite/k old; keyhole set defaults/$suite/k new; done
        keyhole rm -r --purge --yes defaults; ls defaults; keyhole history defaults
        for account in a b; do printf x | keyhole set keychain/generic/s/$account; done; keyhole rm keychain/generic/s/a
        keyhole rm -r --purge --yes keychain/generic/s; keyhole history keychain
        """)
    }
  }
}
