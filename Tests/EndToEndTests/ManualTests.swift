import Testing

@testable import keyhole

/// The manual pages: made of the command's own definitions, complete, and well-formed.
@Suite(.timeLimit(.minutes(1))) struct ManualTests {
  private static let make = "\(Products.helpers)/manual \(Products.keyhole) \"$OUT/man\"; cd \"$OUT/man\"\n"

  @Test func everyCommandHasAPageThatAgreesWithItsHelp() async throws {
    try await withWorld { world in
      try world.check(
        Self.make + """
          for command in $(keyhole --experimental-dump-help | jq -r '.command.subcommands[] | select(.shouldDisplay).commandName'); do
            [ $command != help ] || continue
            [ -e keyhole-$command.1 ] || echo "no page of $command"
            grep -q "keyhole.-$command" keyhole.1 || echo "keyhole(1) leaves out $command"
            keyhole $command --help | grep -oE -- '--[a-z][a-z-]+' | sort -u > help
            sed 's/\\\\f[A-Z]//g; s/\\\\-/-/g' keyhole-$command.1 > plain
            while read -r option; do grep -qF -- "$option" plain || echo "keyhole-$command(1) leaves out $option"; done < help
            keyhole $command --help | sed -n 's/^OVERVIEW: //p' | tr -d '`' > overview
            grep -qF -f overview plain || echo "keyhole-$command(1) begins otherwise"
          done
          """)
    }
  }

  /// Every setting is in keyhole(5) and keyhole-config(1), every mount option in keyhole-mount(1), in the words of the command.
  @Test func everySettingAndMountOptionIsInAPage() async throws {
    try await withWorld { world in
      try world.check(
        Self.make + """
          plain() { sed 's/\\\\f[A-Z]//g; s/\\\\-/-/g' "$1" | tr -s '[:space:]' ' '; }
          keyhole config --json | jq -r '.[].key' > keys
          [ $(wc -l < keys) -ge 9 ] || echo "too few settings"
          plain keyhole.5 > page5; plain keyhole-config.1 > page1; plain keyhole-mount.1 > mount1
          while read -r key; do
            grep -q -- ".B $key " page5 || echo "keyhole(5) leaves out $key"
            grep -q -- "$key" page1 || echo "keyhole-config(1) leaves out $key"
            [ $key = browsers ] || [ $key = plain-programs ] || grep -q -- "$key=" mount1 || echo "keyhole-mount(1) leaves out $key="
          done < keys
          """)
    }
  }

  @Test(.enabled(if: System.exists("/usr/bin/mandoc"), "mandoc is not installed."))
  func thePagesAreWellFormed() async throws {
    try await withWorld { world in
      try world.check(Self.make + "mandoc -T lint -W warning *.[158] | grep -v 'missing date' || true")
    }
  }

  /// Each line of an example is a command that `keyhole` takes: its words are those that a shell makes of it.
  @Test func everyPageHasExamplesThatParse() async throws {
    try await withWorld { world in
      try world.check(
        Self.make + "for page in *.[158]; do grep -q '^.SH EXAMPLES' $page || echo \"$page has none\"; done")
      // Other programs are not found, so they do nothing; redirections go to the test's own folder.
      let words = try world.sh(
        """
        mkdir "$OUT/run"; cd "$OUT/run"; PATH=/nonexistent
        keyhole() { printf '%s\\t' "$@" >&9; printf '\\n' >&9; }
        while IFS= read -r line; do
          case $line in '' | '#'* | '['*) ;; *) eval "$line" ;; esac
        done < '\(Products.helpers)/../Documentation/manual/examples' > /dev/null 2>&1
        """.replacing("printf '\\n' >&9; }", with: "printf '\\n' >&9; }\nexec 9>&1"))
      let commands = words.lines.map { $0.split(separator: "\t").map(String.init) }
      #expect(commands.count > 60, "\(words)")
      for command in commands { #expect(KeyholeCommand.takes(command), "\(command)") }
      let used = Set(commands.map { $0[0] })
      #expect(KeyholeCommand.commandNames.filter { !used.contains($0) }.isEmpty)
      #expect(!KeyholeCommand.takes(["get"]) && !KeyholeCommand.takes(["get", "a", "--nonsense"]))
    }
  }

  /// Completions come from the command, which reads names and never a secret.
  @Test func pathsAndAttributesAreCompleted() async throws {
    try await withWorld { world in
      try world.check(
        """
        keyhole set defaults/com.example.app/volume 1; keyhole set defaults/com.example.app/voice 1
        echo hunter2 | keyhole set keychain/generic/my.service/peter/value
        keyhole completions bash > "$OUT/c"; . "$OUT/c"
        complete_line() {
          COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
          "$(complete -p keyhole | sed 's/.*-F \\([^ ]*\\).*/\\1/')" keyhole "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
          echo "${COMPREPLY[*]}"
        }
        complete_line keyhole get def; complete_line keyhole get defaults/com.example.app/vo
        complete_line keyhole ls keychain/generic/my.service/
        complete_line keyhole attr defaults/com.example.app/volume keyhole.
        complete_line keyhole attr defaults/com.example.app/volume keyhole.type d
        """,
        prints: """
          defaults/
          defaults/com.example.app/voice defaults/com.example.app/volume
          keychain/generic/my.service/peter/
          keyhole.type
          date data dict

          """)
    }
  }
}
