import Glibc
import Testing

/// `keyhole adopt`: secrets of plain files move into the keychain.
@Suite(.timeLimit(.minutes(3))) struct AdoptionTests {
  static func withHome(body: (MountedKeyhole) throws -> Void) async throws {
    try await withWorld { world in
      let keyhole = MountedKeyhole(world, options: ["keychain=vault"])
      defer { keyhole.cleanUp() }
      try keyhole.start()
      try body(keyhole)
    }
  }

  private static let netrc = "# mine\nmachine a.example login u password hunter22\n"

  @Test func aFileOfAKnownFormatBecomesAView() async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      try world.check("cat > ~/.netrc; chmod 640 ~/.netrc", sending: Array(Self.netrc.utf8))
      try world.check("keyhole adopt | sed \"s|$HOME|~|\"", prints: "~/.netrc\t1 secret\n")
      try world.check(
        "keyhole adopt --json | jq -c '.[]' | sed \"s|$HOME|~|\"; keyhole adopt --json ~/.netrc 2> /dev/null || echo $?",
        prints: "{\"path\":\"~/.netrc\",\"secrets\":1}\n2\n")
      try world.check("keyhole doctor | grep -c 'netrc: a secret stands in it in plain text'", prints: "1\n")
      let output = try world.sh("keyhole adopt --yes --erase ~/.netrc")
      #expect(output.status == 0 && output.text.hasSuffix("\tviews/netrc\n"), "\(output)")
      try world.check(
        "readlink ~/.netrc | sed \"s|$MOUNT|MOUNT|\"; cat ~/.netrc",
        prints: "MOUNT/views/netrc\n" + Self.netrc)
      try world.check(
        "ls -A ~ | grep netrc; keyhole view", prints: ".netrc\nnetrc\tnetrc\t1\t\(world.home)/.netrc\n")
      try world.check(
        "keyhole adopt; keyhole adopt --json; keyhole doctor | grep netrc || echo clean",
        prints: "[]\nclean\n")
      try keyhole.check(
        "cat keychain/generic/netrc/a.example.u.password/value",
        prints: "hunter22")
      // A change is the item's, and so is what is written again; a changed item stays.
      try world.check(
        "sed -i --follow-symlinks s/hunter22/hunter33/ ~/.netrc; keyhole adopt --undo --yes ~/.netrc > /dev/null 2>&1"
      )
      try world.check(
        "stat -c '%F %a' ~/.netrc; cat ~/.netrc",
        prints: "regular file 640\n" + Self.netrc.replacing("22", with: "33"))
      try world.check(
        "keyhole adopt --undo --yes ~/.netrc 2> /dev/null || echo $?; keyhole view | cut -f 1,4",
        prints: "3\nnetrc\t-\n")
    }
  }

  /// A file that the mount does not show is as it was, and the vault keeps nothing of it.
  @Test func aLockedMountLeavesTheFile() async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      try world.check(
        "cat > ~/.netrc; printf x | keyhole set keychain/generic/a/b; keyhole lock",
        sending: Array(Self.netrc.utf8))
      try world.check(
        "keyhole adopt --yes ~/.netrc 2>&1 | grep -c 'Required key.*the file is as it was; `keyhole unlock`'",
        prints: "1\n")
      try world.check("cat ~/.netrc; keyhole view; keyhole ls keychain/generic", prints: Self.netrc + "a\n")
      try world.check(
        "keyhole unlock < /dev/null; keyhole adopt --yes ~/.netrc 2> /dev/null | cut -f 2",
        prints: "views/netrc\n")
    }
  }

  /// The message is about the file, and what was begun goes on after the unlock.
  @Test func aLockedVaultIsSaidOfTheFile() async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      try world.check("cat > ~/.netrc", sending: Array(Self.netrc.utf8))
      try world.check(
        "echo horse | keyhole passphrase --weak --cost 14 2> /dev/null", within: LockTests.patience)
      let unlock = "echo horse | keyhole unlock"
      func isNamed(_ command: String, _ consequence: String) throws {
        let output = try world.sh("KEYHOLE_ASK_UNLOCK=no keyhole adopt \(command)")
        let beginning = "keyhole: \(world.home)/.netrc: the keychain is locked, \(consequence). "
        #expect(output.status == 4 && output.error.hasPrefix(beginning + "`keyhole unlock`"), "\(output)")
      }
      try world.check("keyhole lock")
      try isNamed("--yes ~/.netrc", "so its values can't be stored; nothing was changed")
      try world.check("ls -d ~/.netrc*", prints: "\(world.home)/.netrc\n")
      try world.check(unlock, within: LockTests.patience)
      try world.check(
        "keyhole adopt --yes --erase ~/.netrc | cut -f 2; keyhole lock", prints: "views/netrc\n")
      try isNamed("--undo --yes ~/.netrc", "so its values can't be read; the link is still there")
      try world.check("readlink ~/.netrc | grep -c views/netrc", prints: "1\n")
      try world.check(unlock, within: LockTests.patience)
      try world.check("keyhole adopt --undo --yes ~/.netrc > /dev/null; cat ~/.netrc", prints: Self.netrc)
    }
  }

  @Test func anyOtherFileBecomesAnItem() async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      try world.check(
        "mkdir -p ~/.config/gh; printf 'github.com:\\n    oauth_token: gho_1\\n' > ~/.config/gh/hosts.yml")
      try world.check("keyhole adopt | cut -f 2", prints: "1 secret\n")
      try world.check(
        "keyhole adopt --yes ~/.config/gh/hosts.yml 2> /dev/null | cut -f 2",
        prints: "keychain/generic/gh-hosts.yml/file\n")
      try world.check("cat ~/.config/gh/hosts.yml", prints: "github.com:\n    oauth_token: gho_1\n")
      // Without --erase and without a terminal it stays, and doctor says so.
      try world.check(
        "cat ~/.config/gh/hosts.yml.before-keyhole | wc -l; keyhole doctor | grep -c before-keyhole",
        prints: "2\n1\n")
    }
  }

  @Test func whatCantBeMovedSafelyStays() async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      func refuses(_ script: String, _ reason: String, sourceLocation: SourceLocation = #_sourceLocation)
        throws
      {
        let output = try world.sh(script)
        #expect(
          output.status != 0 && output.error.contains(reason), "\(output)", sourceLocation: sourceLocation)
      }
      try world.check("echo A=secret1 > ~/.env; ln ~/.env ~/other")
      try refuses("keyhole adopt --yes --erase ~/.env", "hard links")
      try world.check("rm ~/other")
      try refuses("exec 3< ~/.env; keyhole adopt --yes --erase ~/.env 3<&-", "another program has it open")
      try world.check("cd ~; git init -q .; git add .env")
      try refuses("keyhole adopt --yes --erase ~/.env", "git tracks it")
      try world.check("cd ~; git rm -q --cached .env; echo 'B=x # y' >> .env")
      try refuses("keyhole adopt --yes --erase ~/.env", "line 2")
      try refuses("ln -s ~/.env ~/link.env; keyhole adopt --yes ~/link.env", "symbolic link")
      try refuses("keyhole adopt ~/.env < /dev/null", "--dialect")
      let declined = try world.sh("keyhole adopt --dialect node ~/.env < /dev/null")
      #expect(declined.status == 5 && declined.error.contains("nothing was changed"), "\(declined)")
      #expect(!declined.error.contains("Usage"), "\(declined)")
      try world.check(
        "cat ~/.env; keyhole view; ls ~ -A | grep before || echo none", prints: "A=secret1\nB=x # y\nnone\n")
      try world.check(
        "keyhole adopt --yes --erase --dialect node ~/.env > /dev/null; cat ~/.env",
        prints: "A=secret1\nB=x # y\n")
      let undo = try world.sh("keyhole adopt --undo ~/.env < /dev/null")
      #expect(undo.status == 5 && undo.error.contains("nothing was changed"), "\(undo)")
      #expect(!undo.error.contains("Usage"), "\(undo)")
      try world.check(
        "readlink ~/.env > /dev/null && cat \"$MOUNT\"/views/*.env | head -n 1", prints: "A=secret1\n")
    }
  }

  /// The folder of a project may be called as a temporary file, and a key of ssh may be 0400.
  @Test func filesOfEveryKindAreWrittenAgainAsTheyWere() async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      try world.check("mkdir -p ~/tmp.x ~/a ~/.ssh; cd ~; : > a/empty.env; echo 'A=1' > tmp.x/.env")
      try world.check("cd ~; printf 'A=abc\nX=1' > a/.env; printf key > .ssh/id; chmod 400 .ssh/id")
      let output = try world.sh("keyhole adopt --yes --erase ~/a/empty.env")
      #expect(output.status == 1 && output.error.contains("it is empty"), "\(output)")
      let files = "a/.env tmp.x/.env .ssh/id"
      try world.check(
        "cd ~; for f in \(files); do sha256sum $f; stat -c '%a %s' $f; done > before; for i in 1 2 3 4 5; do keyhole adopt --yes --erase \(files) > /dev/null && keyhole adopt --undo --yes \(files) > /dev/null || echo no; done; for f in \(files); do sha256sum $f; stat -c '%a %s' $f; done | cmp - before"
      )
      try world.check("cd ~; ls -A a tmp.x .ssh | grep keyhole || echo none", prints: "none\n")
    }
  }

  @Test func aRunThatWasKilledIsRepeated() async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      let call = "renameat2"
      try world.check(
        "exec 2> /dev/null; cd ~; echo A=abc > .env; strace -f -qq -o /dev/null -e trace=\(call) -e inject=\(call):signal=KILL:when=1 keyhole adopt --yes .env || readlink .env.before-keyhole > /dev/null && cat .env",
        prints: "A=abc\n")
      try world.check("keyhole doctor 2> /dev/null | grep -c 'was interrupted'", prints: "1\n")
      try world.check("keyhole adopt --yes ~/.env > /dev/null 2>&1; cat ~/.env", prints: "A=abc\n")
      try world.check("test -L ~/.env && cat ~/.env.before-keyhole", prints: "A=abc\n")
      // The old file goes when the file was written again with the same in it; else it is named.
      try world.check(
        "keyhole adopt --undo --yes ~/.env > /dev/null; cat ~/.env; ls -A ~ | grep -c before-keyhole || true",
        prints: "A=abc\n0\n")
      try world.check(
        """
        cd ~; keyhole adopt --yes .env > /dev/null 2>&1; sed -i --follow-symlinks s/abc/def/ .env
        keyhole adopt --undo --yes .env 2>&1 > /dev/null | grep -o 'shred -u.*before-keyhole`'; cat .env .env.before-keyhole
        keyhole doctor 2> /dev/null | grep -c 'shred -u'
        """, prints: "shred -u \(world.home)/.env.before-keyhole`\nA=def\nA=abc\n1\n")
    }
  }

  /// The view, or the items, may have other names by now.
  @Test func whatWasRenamedIsWrittenToo() async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      for rename in ["views/netrc views/mine", "keychain/generic/netrc keychain/generic/mine"] {
        try world.check("rm -f ~/.netrc; cat > ~/.netrc", sending: Array(Self.netrc.utf8))
        try world.check(
          """
          keyhole adopt --yes --erase ~/.netrc > /dev/null; keyhole mv \(rename)
          keyhole adopt --undo --yes ~/.netrc > /dev/null 2>&1; stat -c %F ~/.netrc; cat ~/.netrc; rm -f ~/.netrc
          keyhole rm -r --yes keychain/generic/netrc keychain/generic/mine views/netrc views/mine 2> /dev/null || true
          """, prints: "regular file\n" + Self.netrc)
      }
    }
  }

  /// A file that can only be read stays so, whenever the run is ended.
  @Test(arguments: ["openat", "renameat2"]) func aRunThatWasKilledLeavesPermissions(call: String) async throws
  {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      try world.check("mkdir ~/.ssh; printf key > ~/.ssh/id; chmod 400 ~/.ssh/id")
      let (file, rest) = ("~/.ssh/id", "~/.ssh/id.before-keyhole")
      for number in 1..<20 {
        let options = "-e trace=\(call) -e inject=\(call):signal=KILL:when=\(number) -P \"$HOME/.ssh/id\""
        let run = try world.sh(
          "exec 2> /dev/null; strace -f -qq -o /dev/null \(options) keyhole adopt --yes \(file) > /dev/null; exit $?"
        )
        try world.check(
          "if [ -f \(rest) ] && [ ! -L \(rest) ]; then stat -c %a \(rest); else stat -c %a \(file); fi",
          prints: "400\n")
        if run.status == 0 { break }
      }
      try world.check("keyhole adopt --yes --erase \(file) > /dev/null; cat \(file)", prints: "key")
      try world.check("keyhole adopt --undo --yes \(file) > /dev/null; stat -c %a \(file)", prints: "400\n")
    }
  }

  /// After a run that is killed at any of its steps, the same command ends as an undisturbed one does. The steps are its system
  /// calls of these kinds, one after the other until it ends by itself.
  @Test(arguments: ["rename", "unlink,unlinkat", "symlink,symlinkat", "renameat2", "fsync,fdatasync"])
  func aRunThatWasKilledAtAnyStepIsTakenUp(calls: String) async throws {
    try await Self.withHome { keyhole in
      var number = 1
      while try Self.kill(keyhole.world, calls, at: number) { number += 1 }
      #expect(number > 1)
    }
  }

  /// The old file is overwritten last.
  @Test func anErasureThatWasKilledIsTakenUp() async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      try world.check("cat > ~/.netrc", sending: Array(Self.netrc.utf8))
      let trace =
        "strace -f -qq -o calls -e trace=pwrite64 \(Self.adopt) > /dev/null; grep -c 'pwrite64(' calls"
      let count = try #require(Int(try world.sh(trace).text.split(separator: "\n").last ?? ""))
      try world.check("keyhole adopt --undo --yes ~/.netrc > /dev/null")
      // The vault's own writes are not always as many.
      var number = count + 8
      while number > 1, try !Self.kill(world, "pwrite64", at: number) { number -= 1 }
      try #require(number > 1)
      // One that ends before is the same as one that is not killed.
      for earlier in [number - 1, number - 2] where earlier > 0 {
        _ = try Self.kill(world, "pwrite64", at: earlier)
      }
    }
  }

  private static let adopt = "keyhole adopt --yes --erase ~/.netrc"

  /// Returns false where the run has ended before.
  private static func kill(_ world: World, _ calls: String, at number: Int) throws -> Bool {
    try world.check("rm -f ~/.netrc; cat > ~/.netrc; chmod 640 ~/.netrc", sending: Array(netrc.utf8))
    let options = "-e trace=\(calls) -e inject=\(calls):signal=KILL:when=\(number)"
    let run = try world.sh(
      "exec 2> /dev/null; strace -f -qq -o /dev/null \(options) \(adopt) > /dev/null; exit $?")
    #expect(run.status == 0 || run.status == 128 + SIGKILL, "\(calls) \(number): \(run)")
    try world.check("\(adopt) | cut -f 2; cat ~/.netrc", prints: "views/netrc\n" + netrc)
    try world.check(
      "ls -A ~ | grep netrc; keyhole view; keyhole ls keychain/generic; keyhole doctor 2>&1 | grep -e netrc -e adopt || echo clean",
      prints: ".netrc\nnetrc\tnetrc\t1\t\(world.home)/.netrc\nnetrc\nclean\n")
    try world.check(
      "keyhole adopt --undo --yes ~/.netrc | cut -f 2; stat -c '%F %a' ~/.netrc; keyhole view; keyhole ls keychain/generic; ls -A ~ | grep netrc",
      prints: "views/netrc removed\nregular file 640\n.netrc\n")
    return run.status != 0
  }

  @Test func anUndoThatWasKilledIsTakenUp() async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      for call in [
        "rename:signal=KILL:when=2", "rename:signal=KILL:when=1", "rename:signal=KILL:when=3",
        "fsync:signal=KILL:when=6",
      ] {
        try world.check("cat > ~/.netrc", sending: Array(Self.netrc.utf8))
        try world.check("keyhole adopt --yes --erase ~/.netrc > /dev/null")
        try world.check(
          "exec 2> /dev/null; strace -f -qq -o /dev/null -e trace=rename,fsync -e inject=\(call) keyhole adopt --undo --yes ~/.netrc > /dev/null; true"
        )
        try world.check("cat ~/.netrc", prints: Self.netrc)
        try world.check(
          "keyhole adopt --undo --yes ~/.netrc > /dev/null 2>&1; cat ~/.netrc", prints: Self.netrc)
        try world.check("ls -A ~ | grep netrc; keyhole view; keyhole ls keychain/generic", prints: ".netrc\n")
      }
    }
  }

  /// A link that was deleted is no reason to lose the file; what else has the name stays.
  @Test func aFileWhoseLinkWasDeletedIsWrittenAgain() async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      try world.check("cat > ~/.netrc; chmod 640 ~/.netrc", sending: Array(Self.netrc.utf8))
      try world.check("keyhole adopt --yes --erase ~/.netrc > /dev/null; rm ~/.netrc; ln -s other ~/.netrc")
      let output = try world.sh("keyhole adopt --undo --yes ~/.netrc")
      #expect(output.status == 1 && output.error.contains("it is no longer the link to "), "\(output)")
      try world.check("readlink ~/.netrc; rm ~/.netrc", prints: "other\n")
      try world.check(
        "keyhole adopt --undo --yes ~/.netrc | cut -f 2; stat -c '%F %a' ~/.netrc; cat ~/.netrc; keyhole view",
        prints: "views/netrc removed\nregular file 640\n" + Self.netrc)
    }
  }

  /// The link is known by where it leads, once its folder has another name.
  @Test(arguments: [".env", "s.key"]) func aFileWhoseFolderWasRenamedIsWrittenAgain(file: String) async throws
  {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      try world.check("mkdir ~/a; printf 'TOKEN=abcdefgh\n' > ~/a/\(file)")
      try world.check("keyhole adopt --yes ~/a/\(file) > /dev/null 2>&1; mv ~/a ~/b")
      try world.check("keyhole adopt --yes --erase ~/b/\(file) > /dev/null; ls -A ~/b", prints: file + "\n")
      try world.check("mv ~/b ~/c; keyhole adopt --undo --yes ~/c/\(file) > /dev/null")
      try world.check(
        "test -f ~/c/\(file) && cat ~/c/\(file); ls -A ~/c", prints: "TOKEN=abcdefgh\n\(file)\n")
      try world.check(
        "keyhole view; keyhole ls keychain/generic; keyhole doctor | grep '/[abc]/' || echo none",
        prints: "none\n")
    }
  }

  /// The dialects that read the file are named, where there are any.
  @Test func aDialectIsNamedWhereItReadsTheFile() async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      func reason(_ text: String) throws -> String {
        try world.check("cat > ~/.env", sending: Array(text.utf8))
        let output = try world.sh("cd ~; keyhole adopt --yes .env")
        #expect(output.status == 1, "\(output)")
        return output.error
      }
      // In the portable dialect, words are no value without quotes.
      #expect(try reason("A=hunter22 # note\n").contains("; with --dialect "))
      // No dialect makes two lines of one name one.
      let twice = try reason("A=hunter22\nA=hunter33\n")
      #expect(twice.contains("it stands in line 1 already") && !twice.contains("dialect"), "\(twice)")
      // Nor is a value in a comment protected by any.
      let comment = try reason("# hunter22-hunter22\nA=hunter22-hunter22\n")
      #expect(comment.contains("comment") && !comment.contains("--dialect"), "\(comment)")
    }
  }

  @Test func whatWasMadeStaysIfItIsUsedOrChanged() async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      func undoes(_ change: String, _ reason: String) throws {
        try world.check("rm -f ~/.netrc; cat > ~/.netrc", sending: Array(Self.netrc.utf8))
        try world.check("keyhole adopt --yes --erase ~/.netrc > /dev/null; \(change) > /dev/null")
        let output = try world.sh("keyhole adopt --undo --yes ~/.netrc")
        #expect(output.text.hasSuffix("stays\n") && output.error.contains(reason), "\(output)")
        try world.check(
          "keyhole rm views/netrc; keyhole rm -r --yes keychain/generic/netrc; keyhole rm views/other 2> /dev/null || true"
        )
      }
      let item = "keychain/generic/netrc/a.example.u.password"
      try undoes("printf other | keyhole set \(item)", "was changed or renamed since")
      try undoes("keyhole view other --format env --from P=\(item)", "the view other has values of it")
      try undoes("printf x | keyhole set keychain/generic/netrc/mine", "was added to keychain/generic/netrc")
      try undoes(
        "keyhole view netrc --link ~/second", "it has another link".replacing("it", with: "views/netrc"))
    }
  }

  /// `keyhole adopt FILE` then says which line it can't take.
  @Test func filesThatDoNotParseAreFoundToo() async throws {
    try await withWorld { world in
      try world.check(
        #"""
        cd ~; mkdir .aws .docker
        printf 'machine a.example login u password "hunter 22"\n' > .netrc
        printf 'a.example:5432:db:u:hunter22\nhalf\n' > .pgpass
        printf '//a.example/:_authToken=hunter22\n[half\n' > .npmrc
        printf '[a]\naws_secret_access_key = hunter22\n[half\n' > .aws/credentials
        printf '{"auths": {"a.example": {"auth": "aHVudGVyMjI="}}' > .docker/config.json
        keyhole adopt | sed "s|$HOME/||"
        # In a comment the word says nothing.
        printf '# password\nmachine a.example login "u\n' > .netrc
        rm .pgpass .npmrc .aws/credentials .docker/config.json; keyhole adopt
        """#,
        prints: [".npmrc", ".netrc", ".pgpass", ".aws/credentials", ".docker/config.json"].map {
          "\($0)\t1 secret\n"
        }.joined())
    }
  }

  @Test func keysOfEditorsAreFound() async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      try world.check(
        #"""
        cd ~; mkdir -p .config/{Code,Windsurf}/User .config/zed .cursor .continue
        printf '{\n  // mine\n  "editor.tabSize": 2,\n  "assistant.apiKey": "sk-1234567890",\n  "a.maxTokens": "12345678",\n}\n' > .config/Code/User/settings.json
        printf '{"mcpServers": {"a": {"command": "x", "env": {"A_TOKEN": "abcdefgh1", "PORT": "80", "B_API_KEY": "abcdefgh2"}}}}' > .cursor/mcp.json
        printf 'models:\n  - name: a\n    apiKey: sk-abcdefghij\n  - name: b\n    apiKey: ${{ secrets.B }}\n' > .continue/config.yaml
        printf '{"theme": "dark", "token": "short"}' > .config/zed/settings.json
        printf '{"language_models": {"openai": {"api_key": "sk-1234567890"}}}' > .config/Windsurf/User/settings.json
        keyhole adopt | sed "s|$HOME/||"
        """#,
        prints:
          ".config/Code/User/settings.json\t1 secret\n.config/Windsurf/User/settings.json\t1 secret\n.cursor/mcp.json\t2 secrets\n.continue/config.yaml\t1 secret\n"
      )
      try world.check(
        """
        cd ~; sha256sum .config/Code/User/settings.json .cursor/mcp.json > sums
        keyhole adopt --yes --erase .config/Code/User/settings.json .cursor/mcp.json | cut -f 2; sha256sum --quiet -c sums
        """,
        prints: "keychain/generic/User-settings.json/file\nviews/cursor-mcp.json\n")
    }
  }

  @Test func callersOfGitDoNotHideATrackedFile() async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      try world.check(
        "mkdir ~/project ~/empty; cd ~/empty; git init -q .; cd ~/project; git init -q .; echo A=secret12 > .env; git add .env"
      )
      for variables in [
        "GIT_DIR=$HOME/empty/.git", "GIT_INDEX_FILE=/dev/null",
        "GIT_WORK_TREE=$HOME/empty GIT_DIR=$HOME/empty/.git",
        "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.worktree GIT_CONFIG_VALUE_0=$HOME/empty",
        "GIT_CEILING_DIRECTORIES=$HOME/project",
      ] {
        let output = try world.sh("\(variables) keyhole adopt --yes --erase ~/project/.env")
        #expect(output.status == 1 && output.error.contains("git tracks it"), "\(variables): \(output)")
      }
    }
  }

  @Test func aNameThatIsNotTextIsRefused() async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      let output = try world.sh(
        "cd ~; echo A=1 > \"$(printf 'a\\377.env')\"; keyhole adopt --yes \"$(printf 'a\\377.env')\"")
      #expect(output.status == 2 && output.error.contains("another name with mv(1)"), "\(output)")
      // In a folder of such a name too.
      let inside = try world.sh(
        "mkdir \"$(printf '/%s/d\\377' \"$HOME\")\"; cd \"$(printf '/%s/d\\377' \"$HOME\")\"; echo A=1 > .env; keyhole adopt --yes .env; cat .env"
      )
      #expect(inside.status == 0 && inside.text == "A=1\n", "\(inside)")
    }
  }

  @Test func withoutAMountNothingIsMoved() async throws {
    try await withWorld { world in
      try world.check("echo A=secret1 > ~/.env")
      let output = try world.sh("keyhole adopt --yes ~/.env")
      #expect(output.status == 1 && output.error.contains("keyhole mount"), "\(output)")
      try world.check("cat ~/.env", prints: "A=secret1\n")
    }
  }

  /// Dotfiles are kept in a bare repository, of which the home is the working tree.
  @Test func aRepositoryOfTheEnvironmentCounts() async throws {
    try await Self.withHome { keyhole in
      let world = keyhole.world
      try world.check(
        "cd ~; git init -q --bare dots; cat > .netrc; git --git-dir=dots --work-tree=. add -f .netrc",
        sending: Array(Self.netrc.utf8))
      let output = try world.sh("cd ~; GIT_DIR=$HOME/dots GIT_WORK_TREE=$HOME keyhole adopt --yes .netrc")
      #expect(output.status == 1 && output.error.contains("git tracks it"), "\(output)")
      try world.check("cd ~; cat .netrc", prints: Self.netrc)
      // A file beside it is none of the repository's.
      try world.check(
        "cd ~; echo B=c > new.env; GIT_DIR=$HOME/dots GIT_WORK_TREE=$HOME keyhole adopt --yes --erase new.env 2> /dev/null | cut -f 2",
        prints: "views/home-new.env\n")
    }
  }
}
