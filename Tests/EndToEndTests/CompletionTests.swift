import Testing

/// The tab key in bash, zsh and fish: keys are typed into the shell, in a terminal.
@Suite(.timeLimit(.minutes(1))) struct CompletionTests {
  enum Shell: String, CaseIterable {
    case bash
    case zsh
    case fish

    /// Where the shell finds the script, as the package installs it, and what tells that it listens.
    fileprivate var setUp: String {
      switch self {
      case .bash:
        "keyhole completions bash > ~/c; printf '%s\\n' '. ~/c' 'PS1=' 'PROMPT_COMMAND=\"echo li\"\"stens\"' > ~/rc"
      case .zsh:
        """
        mkdir ~/f; keyhole completions zsh > ~/f/_keyhole
        printf '%s\\n' 'fpath=(~/f $fpath)' 'autoload -Uz compinit; compinit -u' 'PS1=; precmd() { print li""stens }' > ~/.zshrc
        """
      case .fish:
        """
        mkdir -p "$XDG_CONFIG_HOME/fish/completions"; cd "$XDG_CONFIG_HOME/fish"
        keyhole completions fish > completions/keyhole.fish
        printf '%s\\n' 'function fish_prompt; echo li""stens; end' 'function fish_greeting; end' > config.fish
        """
      }
    }

    fileprivate var command: String {
      self == .bash ? "bash --noprofile --rcfile ~/rc -i" : self == .zsh ? "zsh -i" : "fish -i"
    }

    fileprivate var isInstalled: Bool { System.exists("/usr/bin/\(rawValue)") }
  }

  private static func start(_ shell: Shell, _ world: World) throws -> Terminal {
    let terminal = try Terminal(
      ["/bin/sh", "-c", "cd; exec \(shell.command) 2>&1"], environment: world.environment,
      directory: world.outside, errors: world.outside + "/errors")
    try terminal.wait(for: "listens")
    return terminal
  }

  /// Types each line when the shell has done the one before.
  private static func type(_ lines: [String], into shell: Shell, _ world: World) throws {
    let terminal = try start(shell, world)
    for line in lines {
      try terminal.type(line + "\r")
      try terminal.wait(for: "listens")
    }
    try terminal.type("exit\r")
    _ = try terminal.finish()
  }

  @Test(arguments: Shell.allCases.filter(\.isInstalled))
  func pathsAttributesAndTheirValues(shell: Shell) async throws {
    try await withWorld { world in
      try world.check(
        """
        keyhole set defaults/com.example.app/volume 11; keyhole set defaults/com.example.app/voice 1
        keyhole set 'defaults/My App/a: key' 12; echo hunter2 | keyhole set keychain/generic/my.service/peter/value
        """)
      try world.check(shell.setUp)
      // A folder is no end, so what is in it can follow at once; a key is one, so a blank follows.
      try Self.type(
        [
          "keyhole get def\tcom\tvol\t > $OUT/path", "keyhole get defaults/My\t\t > $OUT/awkward",
          "keyhole attr defaults/com.example.app/volume keyhole.t\t > $OUT/name",
          "keyhole attr defaults/com.example.app/volume keyhole.type str\t",
          "keyhole attr keychain/generic/my.service/peter keyhole.his\t 5",
          "keyhole attr keychain/generic/my.service/peter keyhole.eo\t exact",
          "keyhole ls keych\tgen\tmy\t > $OUT/items", "keyhole stat\t --js\t 2> $OUT/option",
        ], into: shell, world)
      try world.check(
        """
        cd "$OUT"; cat path awkward name; keyhole attr defaults/com.example.app/volume keyhole.type; cat items option
        keyhole attr keychain/generic/my.service/peter keyhole.history
        keyhole attr keychain/generic/my.service/peter keyhole.eol
        """,
        prints: """
          11
          12
          integer
          string
          peter
          keyhole: nothing is mounted; `keyhole mount` mounts on \(world.home)/Keyhole
          5
          exact

          """)
    }
  }

  /// The help of an option stands beside none of the words that it takes.
  @Test(.enabled(if: Shell.fish.isInstalled)) func valuesInFishHaveNoHelp() async throws {
    try await withWorld { world in
      try world.check(Shell.fish.setUp)
      try Self.type(
        [
          "complete -C 'keyhole run --on-change ' > $OUT/signals",
          "complete -C 'keyhole export --format j' > $OUT/format",
          "complete -C 'keyhole set x --access user' > $OUT/flag",
        ], into: .fish, world)
      try world.check(
        "cd $OUT; sort signals; cat format flag",
        prints: "HUP\nTERM\nUSR1\nUSR2\nrestart\njson\nuserPresence\n")
      // A script has no cursor.
      try world.check(
        "keyhole completions fish > $OUT/script; fish --no-config -c 'source $OUT/script; complete -C \"keyhole get def\"' 2>&1",
        prints: "defaults/\n")
    }
  }

  /// An item that is there may be named by its service and account.
  @Test(arguments: Shell.allCases.filter(\.isInstalled))
  func shortNames(shell: Shell) async throws {
    try await withWorld { world in
      try world.check("echo hunter2 | keyhole set keychain/generic/my.service/peter")
      try world.check(shell.setUp)
      try Self.type(["keyhole get my.s\tpe\t > $OUT/got"], into: shell, world)
      try world.check("cat $OUT/got", prints: "hunter2")
    }
  }

  /// A name is text, also where it looks like something that a shell runs.
  @Test(arguments: Shell.allCases.filter(\.isInstalled))
  func whatANameHoldsIsNotRun(shell: Shell) async throws {
    try await withWorld { world in
      try world.check("keyhole set 'defaults/a$(touch run)`touch run`/k' 5")
      try world.check(shell.setUp)
      try Self.type(["keyhole get defaults/\tk\t > $OUT/got"], into: shell, world)
      try world.check("cat $OUT/got; ls ~/run 2> /dev/null || true", prints: "5\n")
    }
  }

  @Test(arguments: Shell.allCases.filter(\.isInstalled))
  func secretsAreNeverOffered(shell: Shell) async throws {
    try await withWorld { world in
      try world.check("echo hunter2 | keyhole set keychain/generic/my.service/peter/value")
      try world.check(shell.setUp)
      let item = "keychain/generic/my.service/peter"
      let terminal = try Self.start(shell, world)
      let clear = "\u{15}"
      let lines = [
        "keyhole get \(item)/val\t\t", "keyhole set \(item)/value \t\t",
        "keyhole attr \(item) keyhole.label \t\t",
      ]
      try terminal.type(lines.map { $0 + clear }.joined() + "exit\r")
      let shown = try terminal.finish().text
      #expect(shown.contains("/value") && !shown.contains("hunter2"), "\(shown)")
    }
  }

  @Test(arguments: Shell.allCases.filter(\.isInstalled))
  func optionsMountPointsAndHelp(shell: Shell) async throws {
    try await withWorld { world in
      let keyhole = MountedKeyhole(world, options: [])
      defer { keyhole.cleanUp() }
      try world.check(shell.setUp)
      try Self.type(
        [
          "keyhole mount -o plain-session,keychain=va\t $MOUNT 2> $OUT/mounted",
          "keyhole help mou\t > $OUT/help",
          "keyhole set keychain/generic/s/a --empty --access userPr\t 2> $OUT/set",
          "keyhole unmo\t \(world.mount.dropLast())\t > $OUT/unmounted 2>&1",
        ], into: shell, world)
      try world.check(
        """
        cd "$OUT"; cat mounted unmounted; head -1 help; ls "$MOUNT"; grep -c 'keyhole passphrase' set
        """, prints: "OVERVIEW: Mount the tree, by default on ~/Keyhole.\n1\n")
    }
  }

  /// Paths in a mount, absolute and relative.
  @Test(arguments: Shell.allCases.filter(\.isInstalled))
  func pathsInAMount(shell: Shell) async throws {
    try await withKeyhole { keyhole in
      let world = keyhole.world
      try world.check("keyhole set defaults/com.example.app/volume 11; mkdir -p ~/plain")
      try world.check(shell.setUp)
      try Self.type(
        [
          "keyhole get \(world.mount)/def\tcom\tvol\t > $OUT/absolute", "cd \(world.mount)",
          "keyhole get def\tcom\tvol\t > $OUT/top", "cd defaults", "keyhole get com\tvol\t > $OUT/relative",
          "cd com.example.app", "keyhole get vol\t > $OUT/key", "cd",
        ], into: shell, world)
      try world.check("cd $OUT; cat absolute top relative key", prints: "11\n11\n11\n11\n")
    }
  }
}
