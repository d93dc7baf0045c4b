import Glibc
import Testing

/// Files of `views`, as programs use them.
@Suite(.timeLimit(.minutes(3))) struct ViewTests {
  @Test func isAFileOfItsExactSize() async throws {
    try await AppView.withView { keyhole in
      try keyhole.check("cat views/app", prints: AppView.text)
      try keyhole.check("stat -c '%s %a %F' views/app; ls views", prints: "21 600 regular file\napp\n")
      try keyhole.check(
        "printf longer > keychain/generic/app/TOKEN/value; stat -c %s views/app", prints: "24\n")
      try keyhole.check(
        "python3 -c 'import os; print(os.fstat(os.open(\"views/app\", 0)).st_size)'", prints: "24\n")
      try keyhole.world.check("keyhole view", prints: "app\tenv (portable)\t2\t-\n")
    }
  }

  /// After open(2), stat(2) and fstat(2) have the length of what it has rendered, whichever process has changed a value before.
  @Test func whatAnOpenHasRenderedIsItsLength() async throws {
    try await AppView.withView { keyhole in
      let python = """
        import os, subprocess
        open("templates/t", "w").write("{{ keychain/generic/app/TOKEN | json }}{{ defaults/s/k }}")
        for number in range(60):
            value = "x" * (number * 7 % 23) + str(number)
            if number % 3 == 0:
                subprocess.run(["keyhole", "set", "keychain/generic/app/TOKEN"], input=value.encode(), check=True)
            elif number % 3 == 1:
                open("keychain/generic/app/TOKEN/value", "w").write(value)
            else:
                subprocess.run(["keyhole", "set", "defaults/s/k"], input=value.encode(), check=True)
            for name in "views/app", "views/t":
                file = os.open(name, os.O_RDONLY)
                sizes = [os.fstat(file).st_size, os.stat(name).st_size]
                sizes += [len(os.read(file, 4096)), os.fstat(file).st_size]
                if len(set(sizes)) > 1: print(number, name, sizes)
                if os.getxattr(name, "user.keyhole.stale") != b"false": print(number, name, "stale")
                os.close(file)
        """
      try keyhole.check("mkdir defaults/s; echo x > defaults/s/k")
      try keyhole.check("python3 -", prints: "", sending: Array(python.utf8), within: .seconds(100))
    }
  }

  /// A change does not reach an open handle: what it reads, and where that ends, stays as it was.
  @Test func aHandleEndsWhereItsSnapshotDoes() async throws {
    try await AppView.withView { keyhole in
      let python = """
        import os
        file = os.open("views/app", os.O_RDONLY)
        before = os.fstat(file).st_size
        with open("keychain/generic/app/TOKEN/value", "w") as value: value.write("a longer one")
        print(os.lseek(file, 0, os.SEEK_END) == before, len(os.pread(file, 4096, 0)) == before)
        print(os.stat("views/app").st_size - before)
        """
      try keyhole.check("python3 -", prints: "True True\n11\n", sending: Array(python.utf8))
    }
  }

  /// A program that has the file open can't have taken out lines that others add meanwhile. With JSON its write is refused.
  @Test func linesThatWereAddedToAnOpenFileStay() async throws {
    try await AppView.withView { keyhole in
      try keyhole.world.check("keyhole view data --format json --from keychain/generic/app")
      let python = """
        def rewrite(name, old, new, other, added):
            file = open(name, "r+"); text = file.read(); file.seek(0)
            with open(name, other) as second: second.write(added)
            file.write(text.replace(old, new)); file.truncate()
            try: file.close()
            except OSError as error: print(error.errno)
            print(open(name).read(), end="")
        rewrite("views/app", "abc", "mine", "a", "ADDED='x y'\\n")
        rewrite("views/data", "peter", "other", "w", '{"TOKEN": "json", "USER": "peter", "NEW": "n"}')
        """
      try keyhole.check(
        "python3 -",
        prints: """
          TOKEN=mine
          USER=peter
          ADDED='x y'
          22
          {"TOKEN": "json", "USER": "peter", "NEW": "n"}
          """, sending: Array(python.utf8))
      try keyhole.world.check(
        "keyhole doctor | grep -c 'note.*views/data: refused at .*NEW: another program has added it'",
        prints: "1\n")
    }
  }

  /// Links are outside the vault: making one is no version of the view, and an earlier version has those of now.
  @Test func anEarlierVersionKeepsTheLinks() async throws {
    try await AppView.withView { keyhole in
      let world = keyhole.world
      try world.check(
        "keyhole view app --link ~/.env; keyhole history views/app; keyhole view | cut -f 4 | grep -c env",
        prints: "1\n")
      try keyhole.check("echo TOKEN=abc > views/app")
      try world.check(
        "keyhole undo views/app > /dev/null; cat ~/.env; keyhole view | cut -f 4 | grep -c env",
        prints: AppView.text + "1\n")
    }
  }

  /// `--from` takes full, relative and short paths.
  @Test func itIsMadeFromEveryKindOfPath() async throws {
    try await AppView.withView { keyhole in
      let world = keyhole.world
      for (words, text) in [
        ("app", AppView.text), ("app/TOKEN T=app/USER", "TOKEN=abc\nT=peter\n"),
        ("keychain/generic/app/USER/value", "USER=peter\n"),
      ] {
        try world.check(
          "keyhole view new --format env --from \(words); keyhole get views/new; keyhole rm views/new",
          prints: text)
      }
      try keyhole.check(
        "cd keychain/generic/app; keyhole view new --format env --from USER T=./TOKEN; keyhole get views/new",
        prints: "USER=peter\nT=abc\n")
      let missing = try world.sh("keyhole view other --format env --from nothing/none")
      #expect(missing.status == 3 && missing.error.contains("nothing/none"), "\(missing)")
    }
  }

  @Test func withoutASettingItCantBeOpened() async throws {
    try await AppView.withView { keyhole in
      try keyhole.check(
        "echo '{{ defaults/none/none }}' > templates/none; cat views/none 2>&1 | grep -c 'No such file'",
        prints: "1\n")
    }
  }

  @Test func editorsSaveIt() async throws {
    try await AppView.withView { keyhole in
      try keyhole.check(
        "perl -pi -e s/abc/perl/ views/app; cat keychain/generic/app/TOKEN/value; perl -pi -e s/perl/abc/ views/app",
        prints: "perl")
      try keyhole.check("sed -i s/abc/sed/ views/app; cat keychain/generic/app/TOKEN/value", prints: "sed")
      try keyhole.check(
        "vim -u NONE -es -c '%s/sed/vim/' -c wq views/app; cat keychain/generic/app/TOKEN/value",
        prints: "vim")
      try keyhole.check(
        "vim -u NONE -es -c 'set backup backupcopy=no' -c '%s/vim/gvim/' -c wq views/app; cat views/app",
        prints: "TOKEN=gvim\nUSER=peter\n")
      let python = """
        import os, tempfile
        text = open('views/app').read().replace('gvim', 'python') + 'MORE=1\\n'
        file, name = tempfile.mkstemp(dir='views')
        os.write(file, text.encode()); os.close(file); os.replace(name, 'views/app')
        """
      try keyhole.check("python3 -", sending: Array(python.utf8))
      try keyhole.check("cat views/app; ls -A views", prints: "TOKEN=python\nUSER=peter\nMORE=1\napp\n")
      try keyhole.check("cat keychain/generic/app/MORE/value", prints: "1")
    }
  }

  @Test func whatDoesNotParseChangesNothing() async throws {
    try await AppView.withView { keyhole in
      try keyhole.check(
        "python3 -c 'import os; f = os.open(\"views/app\", os.O_WRONLY | os.O_TRUNC); os.write(f, b\"no line\\n\")\ntry: os.close(f)\nexcept OSError as e: print(e.errno)'",
        prints: "22\n")
      try keyhole.check("cat views/app", prints: AppView.text)
      try keyhole.world.check("keyhole status | grep -c 'views/app.*line 1'", prints: "1\n")
      try keyhole.refuses("echo x > views/new", .notPermitted)
      try keyhole.refuses("mkdir views/new", .notPermitted)
    }
  }

  @Test func oneQuestionNamesEveryItem() async throws {
    for (answer, isAllowed) in [("exit 0", true), ("exit 1", false)] {
      try await AccessTests.withAsked(answer, flags: "") { keyhole in
        try keyhole.world.check(AppView.make)
        try keyhole.check(
          "for i in TOKEN USER; do setfattr -n user.keyhole.access -v devicePasscode keychain/generic/app/$i; done"
        )
        let before = AccessTests.asked(keyhole).count
        if isAllowed {
          try keyhole.check("cat views/app", prints: AppView.text)
        } else {
          try keyhole.refuses("cat views/app", .denied)
        }
        let asked = AccessTests.asked(keyhole).dropFirst(before).joined(separator: "\n")
        #expect(asked.contains("keychain/generic/app/TOKEN") && asked.contains("keychain/generic/app/USER"))
        #expect(asked.components(of: "cat") == 1, "\(asked)")
        try keyhole.world.check("keyhole log | grep -c 'app/TOKEN (in views/app)'", prints: "1\n")
      }
    }
  }

  @Test func aLockedOneAsksForThePassphraseAndKeepsItsLength() async throws {
    try await withWorld { world in
      try world.check(
        "printf '%s\\n' '#!/bin/sh' 'echo horse' > \"$OUT/person\"; chmod +x \"$OUT/person\"")
      let keyhole = MountedKeyhole(
        world, options: ["keychain=vault", "auth-command=\(world.outside)/person"])
      defer { keyhole.cleanUp() }
      try keyhole.start()
      try world.check(AppView.make)
      try world.check(
        "echo horse | keyhole passphrase --weak --cost 14 2> /dev/null", within: LockTests.patience)
      #expect(holds { (try? keyhole.check("stat -c %s views/app", prints: "21\n")) != nil })
      try world.check("keyhole lock")
      try keyhole.check(
        "stat -c %s views/app; getfattr --only-values -n user.keyhole.stale views/app", prints: "21\nfalse")
      try keyhole.check("cat views/app", prints: AppView.text, within: LockTests.patience)
    }
  }

  @Test func aLinkThatWasReplacedIsTakenInOnDemand() async throws {
    try await AppView.withView { keyhole in
      let world = keyhole.world
      try world.check(
        "mkdir \"$OUT/p\"; cd \"$OUT/p\"; keyhole view app --link .env; keyhole view app --link .env; cat .env",
        prints: AppView.text)
      try world.check(
        "cd \"$OUT/p\"; echo x > other; ! keyhole view app --link other 2> /dev/null; cat other",
        prints: "x\n")
      try world.check(
        "cd \"$OUT/p\"; rm .env; printf 'TOKEN=new\\nMORE=2\\n' > .env; keyhole doctor 2> /dev/null | grep -cE 'views/app|in plain text'; true",
        prints: "1\n")
      try keyhole.check("cat views/app", prints: AppView.text)
      // A question that is declined: without a terminal it can't be answered.
      let declined = try world.sh("cd \"$OUT/p\"; keyhole view --take-in .env < /dev/null")
      #expect(declined.status == 5 && declined.error.contains("nothing was taken in"), "\(declined)")
      #expect(!declined.error.contains("Usage"), "\(declined)")
      let linked = try world.sh(
        "cd \"$OUT/p\"; ln .env second; keyhole view --take-in .env --yes; s=$?; rm second; exit $s")
      #expect(linked.status == 1 && linked.error.contains("hard links"), "\(linked)")
      try world.check(
        "cd \"$OUT/p\"; keyhole view --take-in .env --yes; readlink .env > /dev/null && cat .env",
        prints: "changed\tTOKEN\nadded\tMORE\nremoved\tUSER\nTOKEN=new\nMORE=2\n")
      try keyhole.check("cat keychain/generic/app/USER/value", prints: "peter")
      // A refusal lists nothing.
      try keyhole.check("mkdir keychain/generic/app/KEPT; printf precious > keychain/generic/app/KEPT/value")
      try world.check(
        "cd \"$OUT/p\"; rm .env; printf 'TOKEN=new\\nKEPT=other\\n' > .env; ! keyhole view --take-in .env --yes 2> /dev/null",
        prints: "")
      try world.check(
        """
        cd "$OUT/p"; rm .env; echo TOKEN=branch > .env; git init -q .; git add -f .env
        ! keyhole view --take-in .env --yes 2> /dev/null; cat .env
        """, prints: "TOKEN=branch\n")
      try keyhole.check("cat views/app", prints: "TOKEN=new\nMORE=2\n")
    }
  }

  @Test func templatesAreEditedAndTheirViewsAreNot() async throws {
    try await AppView.withView { keyhole in
      try keyhole.check(
        "echo 'token: {{ keychain/generic/app/TOKEN }}' > templates/conf; cat views/conf",
        prints: "token: abc\n")
      try keyhole.refuses("echo x > views/conf", .readOnly)
      try keyhole.check(
        "sed -i s/token/key/ templates/conf; cat views/conf; ls templates", prints: "key: abc\nconf\n")
      try keyhole.check(
        "rm keychain/generic/app/TOKEN/value; getfattr --only-values -n user.keyhole.stale views/conf",
        prints: "true")
      try keyhole.world.check(
        "keyhole doctor 2> /dev/null | grep -c 'problem.*views/conf.*app/TOKEN'; true", prints: "1\n")
    }
  }

  @Test func commandsNeedNoMount() async throws {
    try await withWorld { world in
      try world.check(AppView.make)
      try world.check("keyhole get views/app", prints: AppView.text)
      try world.check(
        "printf 'TOKEN=b\\nUSER=peter\\n' | keyhole set views/app; keyhole get app/TOKEN", prints: "b")
      try world.check("keyhole mv views/app views/other; keyhole ls views", prints: "other\n")
      try world.check(
        "keyhole rm views/other; keyhole ls views; keyhole ls keychain/generic/app", prints: "TOKEN\nUSER\n")
    }
  }
}

extension String {
  /// How many of its words end in a name of a program.
  fileprivate func components(of program: String) -> Int {
    split(whereSeparator: { $0 == " " || $0 == "\n" }).count { $0 == program || $0.hasSuffix("/" + program) }
  }

  /// A view whose dialect can't carry a value is not empty: its last length is shown.
  @Test func lengthIsKeptWithADialectThatFails() async throws {
    try await withKeyhole { keyhole in
      try keyhole.check(
        """
        printf "it's" | keyhole set keychain/generic/s/A; keyhole view v --format env --dialect sh --from keychain/generic/s/A > /dev/null
        stat -c %s views/v > $OUT/size; keyhole attr views/v keyhole.dialect portable; stat -c %s views/v | cmp - $OUT/size
        getfattr --only-values -n user.keyhole.stale views/v; echo; [ $(cat $OUT/size) -gt 5 ] && echo some
        """, prints: "true\nsome\n")
      #expect(try keyhole.sh("cat views/v").error.contains("Invalid or incomplete multibyte"))
    }
  }
}
