import Testing

/// Files that get the same name in the tree, and what else is there.
extension AdoptionTests {
  /// Several runs at once; each file keeps its values.
  @Test(arguments: [".env", "s.key"]) func filesOfOneNameAtOnceGetPlacesOfTheirOwn(file: String) async throws
  {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      try world.check(
        """
        cd ~; for d in 1 2 3 4; do mkdir -p $d/app; echo "TOKEN=key-of-project-$d" > $d/app/\(file); done
        for d in 1 2 3 4; do keyhole adopt --yes --erase $d/app/\(file) > out.$d 2>&1 & done; wait; cat out.? | wc -l
        for d in 1 2 3 4; do cat $d/app/\(file); readlink $d/app/\(file); done | grep -v ^TOKEN | sort -u | wc -l
        for d in 1 2 3 4; do cat $d/app/\(file); done; keyhole doctor 2> /dev/null | grep app || true
        for d in 3 1 4 2; do keyhole adopt --undo --yes $d/app/\(file) > /dev/null; cat $d/app/\(file); done
        """,
        prints: "4\n4\n"
          + [1, 2, 3, 4, 3, 1, 4, 2].map { "TOKEN=key-of-project-\($0)\n" }.joined(), within: .seconds(60))
    }
  }

  /// A run that is ended once its link is there, before anything is stored.
  private static func interrupted(_ file: String) -> String {
    "strace -f -qq -o /dev/null -e trace=symlink,symlinkat -e inject=symlink,symlinkat:signal=KILL:when=1 keyhole adopt --yes \(file) > /dev/null 2>&1"
  }

  /// Another file gets another place, and neither way to end the first run touches it.
  @Test(arguments: [".env", "s.key"], ["--erase", "--undo"])
  func anInterruptedRunOwnsNothingOfAnotherFile(file: String, way: String) async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      let result =
        way == "--undo"
        ? "nothing was stored" : file == ".env" ? "views/app.env" : "keychain/generic/app-s.key/file"
      try world.check(
        """
        exec 2> /dev/null; cd ~; mkdir -p x/app y/app; echo TOKEN=token-of-x > x/app/\(file); printf 'TOKEN=token-of-y\\nONLY=y\\n' > y/app/\(file)
        \(interruptedRun(file)); keyhole adopt --yes --erase y/app/\(file) > /dev/null
        keyhole adopt --yes \(way) x/app/\(file) | cut -f 2; cat x/app/\(file) y/app/\(file)
        keyhole doctor 2> /dev/null | grep interrupted || true
        """, prints: "\(result)\nTOKEN=token-of-x\nTOKEN=token-of-y\nONLY=y\n", within: .seconds(60))
    }
  }

  private func interruptedRun(_ file: String) -> String { Self.interrupted("x/app/\(file)") }

  /// An item that a person has put into the service of an interrupted run stays.
  @Test func whatWasAddedIsNotTakenBack() async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      try world.check(
        """
        exec 2> /dev/null; cd ~; mkdir app; echo TOKEN=a > app/.env; \(Self.interrupted("app/.env"))
        printf mine | keyhole set keychain/generic/app.env/MINE
        keyhole adopt --undo --yes app/.env | cut -f 2; cat app/.env; keyhole get app.env/MINE; echo
        \(Self.interrupted("app/.env")); keyhole adopt --yes --erase app/.env | cut -f 2; cat app/.env; keyhole get app.env/MINE
        """, prints: "nothing was stored\nTOKEN=a\nmine\nviews/app.env-2\nTOKEN=a\nmine", within: .seconds(60)
      )
    }
  }

  /// The links of items that were moved or removed, and links that are gone or replaced.
  @Test func doctorNamesLinksThatLeadNowhere() async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      let doctor = "keyhole doctor 2> /dev/null | grep -v '^ok'"
      try world.check(
        """
        cd ~; for f in a b c d; do mkdir $f; echo "secret of $f" > $f/s.key; done; keyhole adopt --yes --erase ?/s.key > /dev/null
        keyhole mv keychain/generic/a-s.key keychain/generic/moved; keyhole rm -r --yes keychain/generic/b-s.key
        rm c/s.key d/s.key; echo new > d/s.key
        """)
      let output = try world.sh(doctor)
      for line in [
        "a/s.key: the link leads to keychain/generic/a-s.key/file, and the item is keychain/generic/moved/file now",
        "b/s.key: the link leads to keychain/generic/b-s.key/file, which was removed",
        "c/s.key: the link to keychain/generic/c-s.key/file, which has its values, is gone",
        "d/s.key: a file has taken the place of the link to keychain/generic/d-s.key/file",
      ] { #expect(output.text.contains(line), "\(output)") }
      // The commands that it names.
      let removed = try world.sh("cd ~; keyhole adopt --undo --yes b/s.key")
      #expect(removed.error.contains("`keyhole undo keychain/generic/b-s.key/file`"), "\(removed)")
      try world.check(
        """
        cd ~; \(doctor) | grep -o '`ln -sfn? [^`]*`\\|`ln -s[fn]* [^`]*`' | tr -d '`' > commands; sh commands; cat a/s.key c/s.key
        keyhole undo keychain/generic/b-s.key/file > /dev/null; cat b/s.key; rm d/s.key
        \(doctor) | grep -c 's.key'
        """, prints: "secret of a\nsecret of c\nsecret of b\n1\n")
    }
  }

  /// The item gets other names, and another item gets the old name.
  @Test func linksToItemsAreFollowedByHand() async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      let mend = "keyhole doctor 2> /dev/null | grep -o '`ln -sfn [^`]*`' | tr -d '`' > commands; sh commands"
      try world.check(
        """
        cd ~; mkdir w; echo key > w/s.key; keyhole adopt --yes --erase w/s.key > /dev/null
        keyhole mv keychain/generic/w-s.key/file keychain/generic/Büro/file; \(mend); cat w/s.key
        keyhole mv keychain/generic/Büro/file keychain/generic/'zwei é'/file; \(mend); cat w/s.key
        keyhole mv keychain/generic/'zwei é'/file keychain/generic/three/file
        keyhole adopt --undo --yes w/s.key > /dev/null 2>&1; stat -c %F w/s.key; cat w/s.key
        """, prints: "key\nkey\nregular file\nkey\n")
      try world.check(
        """
        cd ~; rm w/s.key; echo key > w/s.key; keyhole adopt --yes --erase w/s.key > /dev/null 2>&1; item=$(readlink w/s.key)
        item=keychain/${item#*/keychain/}; keyhole rm --yes "$item"; echo new | keyhole set "$item"; cat w/s.key
        keyhole doctor 2> /dev/null | grep 's.key' || echo clean
        """, prints: "newclean\n")
    }
  }

  /// An undo that could not write the file leaves another file, which gets the name later, as it is.
  @Test func aFailedUndoTakesNoOtherFileForItsOwn() async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      try world.check(
        """
        cd ~; mkdir p; echo A=first > p/.env; keyhole adopt --yes --erase p/.env > /dev/null
        chmod u-w p; keyhole adopt --undo --yes p/.env 2> /dev/null || echo $?; chmod u+w p
        rm p/.env; echo other > p/.env; keyhole adopt --undo --yes p/.env 2> /dev/null || echo $?
        cat p/.env; keyhole get p.env/A; echo; rm p/.env; keyhole adopt --undo --yes p/.env > /dev/null; cat p/.env
        """, prints: "1\n1\nother\nfirst\nA=first\n")
    }
  }

  /// A run that was ended in the middle is finished only where the file is the one that it has written.
  @Test func anUndoThatWasEndedKnowsItsFile() async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      try world.check(
        """
        cd ~; mkdir p; echo A=first > p/.env; keyhole adopt --yes --erase p/.env > /dev/null
        for n in $(seq 1 20); do
          strace -f -qq -o /dev/null -e trace=fsync -e inject=fsync:signal=KILL:when=$n \
            keyhole adopt --undo --yes p/.env > $OUT/log 2>&1 && break
          [ ! -L p/.env ] || continue
          keyhole get p.env/A > /dev/null; echo $n > $OUT/killed; echo other > p/.env
          keyhole adopt --undo --yes p/.env > $OUT/log 2>&1 && echo taken
          keyhole get p.env/A > /dev/null; mv p/.env p/other; keyhole adopt --undo --yes p/.env > /dev/null; break
        done 2> $OUT/errors
        cat p/.env p/other; grep -v Killed $OUT/errors; wc -l < $OUT/killed
        """, prints: "A=first\nother\n1\n", within: .seconds(60))
    }
  }

  @Test func theWayOnOfACopiedProjectIsNamed() async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      try world.check(
        "cd ~; mkdir p; echo A=first > p/.env; keyhole adopt --yes --erase p/.env > /dev/null; cp -a p q")
      let output = try world.sh("cd ~; keyhole adopt --undo --yes q/.env")
      let command = output.error.split(separator: "`").dropFirst().first.map(String.init) ?? ""
      #expect(output.status == 3 && command.hasPrefix("cp "), "\(output)")
      try world.check(
        "cd ~; \(command); stat -c '%F %a' q/.env; cat q/.env p/.env; ls -A q",
        prints: "regular file 600\nA=first\nA=first\n.env\n")
    }
  }

  /// A person has moved an item elsewhere, or noted something at it: it is more than the file by now.
  @Test(arguments: [
    "mv keychain/generic/p.env/A keychain/generic/mine/A", "attr keychain/generic/p.env/A comment note",
  ])
  func anItemThatIsUsedOtherwiseStays(command: String) async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      try world.check(
        "mkdir ~/p; cd ~/p; echo A=first > .env; keyhole adopt --yes --erase .env > /dev/null; keyhole \(command)"
      )
      let output = try world.sh("cd ~/p; keyhole adopt --undo --yes .env; cat .env")
      #expect(output.text.hasSuffix("views/p.env stays\nA=first\n"), "\(output)")
      #expect(output.error.contains("/A was changed or renamed since"), "\(output)")
      try world.check("keyhole find A | tail -n 1 | xargs keyhole get", prints: "first")
    }
  }

  /// A program has replaced the link by a file, which is adopted again.
  @Test func aSecondAdoptionNamesTheFirst() async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      try world.check(
        "mkdir ~/p; cd ~/p; echo A=first > .env; keyhole adopt --yes --erase .env > /dev/null; rm .env; echo A=second > .env"
      )
      let output = try world.sh("cd ~/p; keyhole adopt --yes --erase .env")
      #expect(output.status == 0 && output.text.hasSuffix("\tviews/p.env-2\n"), "\(output)")
      #expect(output.error.contains("was adopted before: views/p.env stays"), "\(output)")
      try world.check(
        "cd ~/p; cat .env \"$MOUNT/views/p.env\"; keyhole doctor 2> /dev/null | grep 'p.env' || echo clean",
        prints: "A=second\nA=first\nclean\n")
    }
  }

  @Test func gitKeepsWhatItHas() async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      try world.check(
        """
        cd ~; mkdir p; cd p; git init -q; git config user.name a; git config user.email a@b; echo A=abcdef > .env; git add .env
        git commit -qm one; git rm -q --cached .env; echo .env > .gitignore
        """)
      let output = try world.sh("cd ~/p; keyhole adopt --yes .env")
      #expect(output.error.contains(".env: a commit of git has it, with the secrets of then"), "\(output)")
      #expect(
        output.error.contains("`git add` would take it, as no `.gitignore` has `*.before-keyhole`"),
        "\(output)")
      let other = try world.sh(
        "cd ~/p; echo '*.env*' > .gitignore; echo A=b > b.env; keyhole adopt --yes b.env")
      #expect(other.status == 0 && !other.error.contains("git"), "\(other)")
    }
  }

  @Test func whatCanNotBeALinkIsRefused() async throws {
    try await Self.withHome { keyhole in
      try keyhole.world.check(
        """
        cd ~; echo x | keyhole set keychain/generic/a/b; echo A=b > $'two\\nlines.env'
        keyhole adopt --yes $'two\\nlines.env' 2>&1 | grep -c 'its path has a line feed'
        keyhole adopt --yes "$MOUNT/keychain/generic/a/b/value" 2>&1 | grep -c 'it is in the mount already'
        keyhole view v --format env --from keychain/generic/a; keyhole lock
        KEYHOLE_ASK_UNLOCK=no keyhole view v --link ~/v.env; ls ~/v.env 2>&1 | grep -c cannot; true
        """, prints: "1\n1\n0\n")
    }
  }
}
