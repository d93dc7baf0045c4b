import Glibc
import KeyringHarness
import Testing

/// Views that are removed, replaced, moved, watched and backed up.
@Suite(.timeLimit(.minutes(5))) struct ViewLifeTests {
  /// The folder outside is on another file system than the mount.
  @Test func aFileOfAnotherFileSystemReplacesIt() async throws {
    try await AppView.withView { keyhole in
      try keyhole.check(
        """
        printf '# moved\\nTOKEN=moved\\nUSER=peter\\nMORE=1\\n' > "$OUT/new"; mv "$OUT/new" views/app; cat views/app
        cat keychain/generic/app/TOKEN/value keychain/generic/app/MORE/value; ls views
        """, prints: "# moved\nTOKEN=moved\nUSER=peter\nMORE=1\nmoved1app\n")
      try keyhole.check(
        "rm views/app; printf 'TOKEN=abc\\nUSER=peter\\n' > views/app; cat views/app", prints: AppView.text)
      // A file that does not parse leaves the view as it was.
      try keyhole.check(
        "echo 'no line' > \"$OUT/new\"; ! mv \"$OUT/new\" views/app 2> /dev/null; cat views/app",
        prints: AppView.text)
      try keyhole.refuses("echo A=b > views/new", .notPermitted)
    }
  }

  /// `mv` to another file system and back takes the attributes along, without a complaint, and the links lead to it again.
  @Test func itGoesToAnotherFileSystemAndBack() async throws {
    try await AppView.withView { keyhole in
      try keyhole.world.check("mkdir \"$OUT/p\"; cd \"$OUT/p\"; keyhole view app --link .env")
      try keyhole.check(
        """
        setfattr -n user.keyhole.dialect -v sh views/app; mv views/app "$OUT/p/app"; ls views
        mv "$OUT/p/app" views/app 2>&1; cat "$OUT/p/.env"
        getfattr --only-values -n user.keyhole.dialect views/app
        """, prints: AppView.text + "sh")
    }
  }

  /// Each appends to the file as it is at its commit, not to what it was when it was opened.
  @Test func linesOfTwoWritersThatAppendStay() async throws {
    try await AppView.withView { keyhole in
      try keyhole.check(
        """
        exec 3>> views/app 4>> views/app; echo A=first >&3; exec 3>&-; printf rotated > keychain/generic/app/TOKEN/value
        echo B=second >&4; exec 4>&-; cat views/app; cat keychain/generic/app/A/value keychain/generic/app/B/value
        """, prints: "TOKEN=rotated\nUSER=peter\nA=first\nB=second\nfirstsecond")
    }
  }

  @Test func aFileReplacesItAlsoWithoutHistory() async throws {
    try await AppView.withView("history=0") { keyhole in
      try keyhole.check(
        """
        printf 'TOKEN=moved\\nUSER=peter\\n' > "$OUT/new"; mv "$OUT/new" views/app; cat views/app keychain/generic/app/TOKEN/value
        ls -A .keyhole/history/views; rm views/app; ls views
        """, prints: "TOKEN=moved\nUSER=peter\nmoved")
      try keyhole.world.check("keyhole lock; keyhole unlock < /dev/null")
      try keyhole.refuses("echo A=b > views/app", .notPermitted)
    }
  }

  /// An item that is missing is made again by a file that has its value, in each way to write one.
  @Test func aMissingItemIsMendedByAWrite() async throws {
    try await AppView.withView { keyhole in
      let world = keyhole.world
      let lose = "rm keychain/generic/app/TOKEN/value"
      let outline = "TOKEN={{ keychain/generic/app/TOKEN }}\nUSER={{ keychain/generic/app/USER }}\n"
      try keyhole.check(lose)
      try keyhole.refuses("cat views/app", .missing)
      try world.check(
        "keyhole status | grep -c 'refused.*views/app  it refers to keychain/generic/app/TOKEN'",
        prints: "1\n")
      try world.check(
        "keyhole view app 2> \"$OUT/error\"; [ $? = 3 ] && grep -c app/TOKEN \"$OUT/error\"",
        prints: outline + "1\n")
      try world.check(
        "keyhole get views/app 2>&1 | grep -c 'keychain/generic/app/TOKEN, which is not there'; true",
        prints: "1\n")
      try keyhole.check(
        "printf 'TOKEN=one\\nUSER=peter\\n' > views/app; cat views/app", prints: "TOKEN=one\nUSER=peter\n")
      try keyhole.check(
        "\(lose); printf 'TOKEN=two\\nUSER=peter\\n' > \"$OUT/new\"; mv \"$OUT/new\" views/app; cat keychain/generic/app/TOKEN/value",
        prints: "two")
      try keyhole.check(
        "\(lose); printf 'TOKEN=three\\nUSER=peter\\n' > \"$OUT/new\"; cp \"$OUT/new\" views/app; cat keychain/generic/app/TOKEN/value",
        prints: "three")
      try keyhole.check(lose)
      try world.check(
        "printf 'USER=peter\\n' | keyhole set views/app; keyhole get views/app", prints: "USER=peter\n")
      try world.check("keyhole doctor 2> /dev/null | grep -c 'problem.*views/app'; true", prints: "0\n")
    }
  }

  @Test func itIsNotCopied() async throws {
    try await AppView.withView { keyhole in
      let world = keyhole.world
      try world.check(
        "keyhole cp views/app views/other 2>&1 | grep -c 'keyhole view other'; echo '{{ keychain/generic/app/USER }}' | keyhole set templates/one",
        prints: "1\n")
      // The command that is named works.
      try world.check(
        "eval \"$(keyhole cp templates/one templates/two 2>&1 | cut -d '`' -f 2)\"; keyhole get views/two; keyhole ls views",
        prints: "peter\napp\none\ntwo\n")
    }
  }

  /// `mv` in the mount and `keyhole mv`; what is removed is named.
  @Test func linksFollowTheView() async throws {
    try await AppView.withView { keyhole in
      let world = keyhole.world
      try world.check("mkdir \"$OUT/p\"; cd \"$OUT/p\"; keyhole view app --link .env")
      for name in ["second", "third"] {
        try name == "second"
          ? keyhole.check("mv views/app views/second") : world.check("keyhole mv views/second views/third")
        #expect(holds { (try? world.check("cat \"$OUT/p/.env\"", prints: AppView.text)) != nil })
        try world.check("keyhole view | grep -c \"$OUT/p/.env\"", prints: "1\n")
      }
      try world.check("keyhole doctor 2> /dev/null | grep -c '/p/.env'; true", prints: "0\n")
      // Without a mount it is named, and changed on demand.
      try keyhole.unmount()
      try world.check(
        "keyhole mv views/third views/last; keyhole view", prints: "last\tenv (portable)\t2\t-\n")
      try world.check(
        "keyhole doctor 2> /dev/null | grep -c '/p/.env.*views/third.*views/last'; true", prints: "1\n")
      try world.check(
        "keyhole view last --link \"$OUT/p/.env\"; keyhole doctor 2> /dev/null | grep -c '/p/.env'; true",
        prints: "0\n")
      try keyhole.start()
      try world.check("cat \"$OUT/p/.env\"", prints: AppView.text)
      // A link of another program's, which leads to a folder of the same name, stays.
      try world.check(
        "ln -s /srv/views/old \"$OUT/p/other\"; ! keyhole view last --link \"$OUT/p/other\" 2> /dev/null; readlink \"$OUT/p/other\"",
        prints: "/srv/views/old\n")
      try keyhole.check("rm views/last")
      try world.check(
        "keyhole doctor 2> /dev/null | grep -c '/p/.env: the link leads to views/last, which was removed'; true",
        prints: "1\n")
      try world.check("keyhole undo views/last > /dev/null; cat \"$OUT/p/.env\"", prints: AppView.text)
    }
  }

  @Test func editorsThatUnlinkFirstKeepIt() async throws {
    try await AppView.withView { keyhole in
      try keyhole.check(
        "vim -u NONE -es -c 'set nobackup nowritebackup' -c '%s/abc/vim/' -c wq views/app; cat views/app",
        prints: "TOKEN=vim\nUSER=peter\n")
      try keyhole.check(
        "emacs -Q --batch views/app --eval '(progn (setq backup-by-copying nil) (while (search-forward \"vim\" nil t) (replace-match \"emacs\")) (save-buffer))' 2> /dev/null; cat views/app",
        prints: "TOKEN=emacs\nUSER=peter\n", within: .seconds(60))
      try keyhole.check(
        "cp views/app \"$OUT/copy\"; sed -i s/emacs/copy/ \"$OUT/copy\"; cp --remove-destination \"$OUT/copy\" views/app; cat views/app; ls -A views",
        prints: "TOKEN=copy\nUSER=peter\napp\n")
    }
  }

  /// A path that was a link of another view before: it never leads to that one's values by itself.
  @Test func aLinkIsOfOneView() async throws {
    try await AppView.withView { keyhole in
      let world = keyhole.world
      try world.check(
        """
        mkdir "$OUT/p"; cd "$OUT/p"; keyhole view app --link .env; rm .env
        printf dev | keyhole set keychain/generic/dev/TOKEN; keyhole view dev --format env --from keychain/generic/dev
        keyhole view dev --link .env; keyhole view | cut -f 1,4; keyhole rm views/dev
        keyhole mv views/app views/last; cat .env 2> /dev/null || echo gone; readlink .env | grep -o 'views/.*'
        keyhole undo views/dev > /dev/null; cat .env
        """,
        prints: "app\t-\ndev\t\(world.outside)/p/.env\ngone\nviews/dev\nTOKEN=dev\n")
    }
  }

  /// With the plugin that is installed with Keyhole, whatever the user's settings say.
  @Test(arguments: ["vim", "nvim"])
  func vimLeavesNothingBesideALink(program: String) async throws {
    try await AppView.withView { keyhole in
      let world = keyhole.world
      try world.check(
        """
        mkdir "$OUT/a ,b"; cd "$OUT/a ,b"; keyhole view app --link .env
        echo 'set backup writebackup undofile backupskip= backupdir=. undodir=.' > "$OUT/vimrc"
        \(program) -u "$OUT/vimrc" -N -es -c '%s/abc/one/' -c wq .env; cat .env; rm .env?*
        mkdir -p "$OUT/rtp/plugin"; cp \(Products.helpers)/vim/keyhole.vim "$OUT/rtp/plugin"
        echo "set runtimepath^=$OUT/rtp" >> "$OUT/vimrc"
        \(program) -u "$OUT/vimrc" -N -es -c '%s/one/two/' -c w -c 'redir! > $OUT/options' -c 'silent set undofile?' -c 'redir END' -c q .env
        cat .env "$OUT/options"; ls -A; echo text > other; \(program) -u "$OUT/vimrc" -N -es -c '%s/text/next/' -c wq other; ls -A
        """,
        prints:
          "TOKEN=one\nUSER=peter\nTOKEN=two\nUSER=peter\n\nnoundofile\n.env\n.env\n.other.un~\nother\nother~\n",
        within: .seconds(60))
    }
  }

  @Test func itsHistoryIsKept() async throws {
    try await AppView.withView { keyhole in
      let world = keyhole.world
      try keyhole.check(
        "printf '# mine\\nTOKEN=abc\\nUSER=peter\\n' > views/app; ls .keyhole/history/views", prints: "app\n")
      try keyhole.check(
        "cat .keyhole/history/views/app/*",
        prints: "TOKEN={{ keychain/generic/app/TOKEN }}\nUSER={{ keychain/generic/app/USER }}\n")
      try keyhole.check("stat -c %s .keyhole/history/views/app/*", prints: "76\n")
      try world.check(
        "keyhole rm views/app; keyhole history views; keyhole undo views/app > /dev/null",
        prints: "views/app\n")
      try keyhole.check("cat views/app", prints: "# mine\nTOKEN=abc\nUSER=peter\n")
      try world.check(
        "keyhole rm --purge views/app; keyhole history views/app 2> /dev/null || echo $?; keyhole history views; ! keyhole undo views/app 2> /dev/null",
        prints: "3\n")
      try keyhole.check("ls .keyhole/history/views; cat keychain/generic/app/TOKEN/value", prints: "abc")
    }
  }

  @Test func referencesFollowMoves() async throws {
    try await AppView.withView { keyhole in
      let world = keyhole.world
      try keyhole.check(
        "mkdir defaults/s; echo 80 > defaults/s/port; echo '{{ defaults/s/port }} {{ keychain/generic/app/TOKEN }}' > templates/t"
      )
      try world.check(
        "keyhole mv keychain/generic/app/TOKEN keychain/generic/app/KEY; keyhole mv defaults/s defaults/new")
      try keyhole.check(
        "mv keychain/generic/app keychain/generic/other; mv defaults/new/port defaults/new/number; cat views/app views/t templates/t",
        prints: AppView.text + "80 abc\n{{ defaults/new/number }} {{ keychain/generic/other/KEY }}\n")
      try world.check("keyhole doctor | grep -c views; true", prints: "0\n")
    }
  }

  /// Names with what ends a reference, and a tab.
  @Test func referencesFollowEveryName() async throws {
    try await AppView.withView { keyhole in
      try keyhole.check(
        """
        mkdir defaults/s; echo 80 > 'defaults/s/a%09b'; echo '{{ defaults/s/a%09b }}' > templates/t
        for names in 'a%09b:x%09y' 'x%09y:p|q}r' 'p|q}r:end ' 'end :port'; do
          mv "defaults/s/${names%:*}" "defaults/s/${names#*:}"; cat templates/t views/t
        done
        echo '{{ keychain/generic/app/TOKEN | json }}' > templates/t
        mv keychain/generic/app/TOKEN 'keychain/generic/app/T|K}'; cat templates/t views/t
        """,
        prints: """
          {{ defaults/s/x%09y }}
          80
          {{ defaults/s/p%7Cq%7Dr }}
          80
          {{ defaults/s/end%20 }}
          80
          {{ defaults/s/port }}
          80
          {{ keychain/generic/app/T%7CK%7D | json }}
          "abc"

          """)
    }
  }

  /// Renames of settings wait in the state folder until the vault is open.
  @Test func referencesFollowSettingsThatAreRenamedWhileItIsLocked() async throws {
    try await AppView.withView { keyhole in
      let world = keyhole.world
      try keyhole.check(
        "mkdir defaults/s; echo 80 > defaults/s/port; echo '{{ defaults/s/port }}' > templates/t")
      try world.check(
        "echo horse | keyhole passphrase --weak --cost 14 2> /dev/null; keyhole lock",
        within: LockTests.patience
      )
      try keyhole.check("mv defaults/s/port defaults/s/number; mv defaults/s defaults/new")
      try world.check("keyhole mv defaults/new/number defaults/new/n")
      try world.check("echo horse | keyhole unlock", within: LockTests.patience)
      let text = "{{ defaults/new/n }}\n80\n"
      #expect(holds { (try? keyhole.check("cat templates/t views/t", prints: text)) != nil })
      // A command without a mount and a terminal finds the vault locked.
      try keyhole.unmount()
      try world.check("keyhole mv defaults/new/n defaults/new/last < /dev/null")
      try keyhole.start()
      try keyhole.check("mv defaults/new/last defaults/new/port")
      try world.check("echo horse | keyhole unlock", within: LockTests.patience)
      let last = "{{ defaults/new/port }}\n"
      #expect(holds { (try? keyhole.check("cat templates/t", prints: last)) != nil })
      try world.check(
        "keyhole doctor | grep -c views; ls \"$HOME/../state/keyhole\" | grep renames; true", prints: "0\n")
    }
  }

  @Test func oneChangeIsOneEvent() async throws {
    try await AppView.withView { keyhole in
      try keyhole.check(
        "mkdir defaults/probe; echo '{{ keychain/generic/app/TOKEN }}' > templates/t; cat views/app views/t > /dev/null; ls -l views > /dev/null"
      )
      let (watcher, lines, command) = (
        try keyhole.inotify("views"), try keyhole.events(), try keyhole.watch()
      )
      _ = try lines.until("views/t")
      for number in 1...3 {
        try keyhole.check("printf value\(number) > keychain/generic/app/TOKEN/value")
        try watcher.until { $0.contains("views/app") && $0.contains("CLOSE_WRITE") }
      }
      try keyhole.check(
        "printf 'TOKEN=last\\nUSER=peter\\n' > views/app; echo end | keyhole set keychain/generic/end/end/value"
      )
      _ = try lines.until("generic/end/end")
      _ = try command.until("generic/end/end")
      #expect(command.lines.count { $0.contains("\"views/app\"") && $0.contains("modified") } == 4)
      #expect(lines.lines.count { $0.contains("\"views/app\"") && $0.contains("modified") } == 4)
      #expect(lines.lines.count { $0.contains("\"views/t\"") && $0.contains("modified") } == 4)
      #expect(watcher.lines.count { $0.hasPrefix("MODIFY") && $0.contains("views/app") } == 3)
    }
  }

  @Test func aWatchNeedsNoMount() async throws {
    try await withWorld { world in
      try world.check(AppView.make)
      let watcher = Watcher(try world.launch("exec keyhole watch views/app 2>&1"))
      var number = 0
      repeat {
        number += 1
        try world.check("printf \(number) | keyhole set keychain/generic/app/TOKEN/value")
      } while (try? watcher.program.line(within: .milliseconds(200))) == nil
      try world.check("printf end | keyhole set keychain/generic/app/TOKEN/value")
      try watcher.until { $0.contains("modified\tviews/app") }
    }
  }

  @Test func aBackupHasIt() async throws {
    try await withWorld { world in
      try world.check(AppView.make)
      try world.check(
        "keyhole backup --init > $OUT/key 2> /dev/null; keyhole backup $OUT/b > /dev/null; keyhole rm --purge views/app; keyhole rm -r --yes keychain/generic/app"
      )
      try world.check(
        "keyhole restore --yes $OUT/b < $OUT/key > /dev/null; keyhole get views/app", prints: AppView.text,
        within: .seconds(60))
    }
  }

  /// Views stay in the vault, and wait there for their items.
  @Test func itsItemsMoveAndComeBack() async throws {
    let bus = try PrivateBus()
    try bus.startKeyring()
    try await withWorld { world in
      let withBus = "export DBUS_SESSION_BUS_ADDRESS='\(bus.address)';"
      try world.check(AppView.make)
      try world.check(
        "\(withBus) keyhole migrate --from vault --to secret-service; keyhole migrate --from secret-service --to vault",
        prints: "moved 2 items from vault to secret-service\nmoved 2 items from secret-service to vault\n",
        within: .seconds(60))
      try world.check("keyhole get views/app; keyhole ls views", prints: AppView.text + "app\n")
    }
    withExtendedLifetime(bus) {}
  }

  @Test func faultsHaveAnErrnoAndALineOfTheDoctor() async throws {
    try await AppView.withView { keyhole in
      let world = keyhole.world
      try keyhole.refuses("echo '{{ views/app }}' | dd of=templates/loop status=none", .loop)
      try world.check("keyhole status | grep -c 'templates/loop.*leads to a view'", prints: "1\n")
      try keyhole.check("printf '\\377' > keychain/generic/app/USER/value")
      try keyhole.refuses("cat views/app", .illegalSequence)
      try world.check(
        "keyhole doctor 2> /dev/null | grep -c 'views/app: USER: the value is not UTF-8'; true", prints: "1\n"
      )
      try keyhole.check("printf peter > keychain/generic/app/USER/value; rm keychain/generic/app/TOKEN/value")
      try keyhole.refuses("cat views/app", .missing)
      try world.check(
        "keyhole doctor 2> /dev/null | grep -c 'views/app: it refers to keychain/generic/app/TOKEN'; true",
        prints: "1\n")
      try keyhole.check(
        "printf abc > keychain/generic/app/TOKEN/value; setfattr -n user.keyhole.programs -v 'deny *' keychain/generic/app/TOKEN"
      )
      try keyhole.refuses("cat views/app", .denied)
      try world.check("keyhole log | grep -c 'app/TOKEN (in views/app)'", prints: "1\n")
      try world.check(
        "keyhole doctor | grep -c 'note.*views/app: refused at .*the rules of keychain/generic/app/TOKEN keep /.*cat out'",
        prints: "1\n")
      try keyhole.check("keyhole lock")
      try keyhole.refuses("cat views/app", .noKey)
      try world.check(
        "keyhole doctor | grep -c 'note.*views/app: refused at .*the keychain is locked'", prints: "1\n")
      // The unlock takes the notes of the lock along.
      try world.check("keyhole unlock < /dev/null")
      let locked = "keyhole doctor | grep -c 'the keychain is locked'; true"
      #expect(holds { (try? world.check(locked, prints: "0\n")) != nil })
      try world.check(
        "keyhole view two --format env --from A=keychain/generic/app/USER B=keychain/generic/app/USER"
      )
      try keyhole.refuses("printf 'A=1\\nB=2\\n' | dd of=views/two status=none", .invalid)
      try world.check(
        "keyhole doctor | grep -c 'note.*views/two: refused at .*it is the same item as A'", prints: "1\n")
      try world.check(
        "keyhole doctor | grep -c 'note.*templates/loop: refused at .*leads to a view'", prints: "1\n")
      try keyhole.refuses("printf 'a\\n\\377' | dd of=templates/bytes status=none", .illegalSequence)
      try world.check(
        "keyhole doctor | grep -c 'note.*templates/bytes: refused at .*line 2: the text is not UTF-8'",
        prints: "1\n")
      // A shell sees an error of write(2), and none of close(2). A change within the same second makes the note obsolete.
      try keyhole.refuses("printf '\\377' > templates/bytes", .illegalSequence)
      try keyhole.check("echo Grün > templates/bytes")
      try keyhole.refuses("printf '\\377' >> templates/bytes", .illegalSequence)
      try keyhole.check("echo more >> templates/bytes; cat views/bytes", prints: "Grün\nmore\n")
      try world.check("keyhole doctor | grep -c 'templates/bytes'; true", prints: "0\n")
      // Notes have the name of their view, and go with it.
      try keyhole.check("mv views/two views/three")
      let notes = "keyhole doctor 2> /dev/null | grep -o 'views/t[a-z]*: refused'; true"
      #expect(holds { (try? world.check(notes, prints: "views/three: refused\n")) != nil })
      try world.check("keyhole rm views/three")
      #expect(holds { (try? world.check(notes, prints: "")) != nil })
    }
  }
}
