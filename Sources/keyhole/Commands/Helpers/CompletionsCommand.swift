import ArgumentParser

struct CompletionsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "completions", abstract: "Print the script that completes commands in a shell.",
    discussion: "For bash: keyhole completions bash > ~/.local/share/bash-completion/completions/keyhole")

  enum Shell: String, CaseIterable, ExpressibleByArgument {
    case bash
    case zsh
    case fish
  }

  @Argument(help: "bash, zsh or fish.")
  var shell: Shell

  func run() {
    StandardOutput.print(script)
  }
}

extension CompletionsCommand {
  /// The library's own script, but for names of the tree: they may hold blanks, colons and what a shell would
  /// run, and a folder is no end, so no blank follows it.
  private var script: String {
    let names = KeyholeCommand.commandNames.joined(separator: " ")
    switch shell {
    case .bash:
      return KeyholeCommand.completionScript(for: .bash) + "\n" + Self.namesInBash
        + Self.helpInBash.replacing("COMMANDS", with: names)
    case .zsh:
      return KeyholeCommand.completionScript(for: .zsh)
        .replacing("\n_keyhole() {\n", with: "\n" + Self.namesInZsh + "\n_keyhole() {\n", maxReplacements: 1)
        .replacing("'*:subcommands:'", with: "'*:subcommands:(\(names))'")
    case .fish:
      return Self.withoutRepeatedHelp(KeyholeCommand.completionScript(for: .fish))
        + Self.helpInFish.replacing("COMMANDS", with: names)
    }
  }

  /// fish shows an option's help beside each word that it takes; a tab begins a text of the word's own.
  private static func withoutRepeatedHelp(_ script: String) -> String {
    let lines = script.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      guard let words = line.firstMatch(of: /^(complete .* -rfka ')([A-Za-z][A-Za-z0-9 -]*)'$/) else {
        return String(line)
      }
      return words.1 + words.2.split(separator: " ").map { $0 + #"\t"# }.joined(separator: " ") + "'"
    }
    // The names that the command prints.
    let printed = "    command $tokens[1] $argv $tokens"
    return lines.joined(separator: "\n")
      // `complete -C` in a script has no cursor that `commandline -C` could give.
      .replacing("(__keyhole_tokens -tC)", with: "(commandline -ct | string length)")
      .replacing(printed, with: printed + #" | string replace -r '$' '\t'"#, maxReplacements: 1)
  }

  private static let helpInFish = """

    complete -c keyhole -n '__keyhole_should_offer_completions_for_positional "keyhole help" -eq 1' -fa 'COMMANDS'

    """

  private static let helpInBash = #"""


    _keyhole_help() {
        COMPREPLY=($(compgen -W 'COMMANDS' -- "${cur}"))
    }

    """#

  /// compgen -W would expand what is in a name, and run a `$(…)`.
  private static let namesInBash = #"""
    __keyhole_unquoted() {
        local text="${1}" plain=''
        case "${text}" in
        \'*) plain="${text//\'/}" text='' ;;
        \"*) text="${text//\"/}" ;;
        esac
        while [[ "${text}" = *\\* ]]; do
            plain+="${text%%\\*}"
            text="${text#*\\}"
            plain+="${text:0:1}"
            text="${text:1}"
        done
        printf %s "${plain}${text}"
    }

    __keyhole_custom_complete() {
        local -a words=()
        local word
        for word in "${COMP_WORDS[@]}"; do
            words+=("$(__keyhole_unquoted "${word}")")
        done
        local -r plain="$(__keyhole_unquoted "${cur}")"
        "${COMP_WORDS[0]}" "${@:1:${#}-1}" "${#plain}" "${words[@]}"
    }

    __keyhole_add_completions() {
        local completion
        if [[ "${1}" != -W ]]; then
            while IFS='' read -r completion; do
                COMPREPLY+=("${completion}")
            done < <(compgen "${@}" -- "${cur}")
            return
        fi
        local -r plain="$(__keyhole_unquoted "${cur}")"
        while IFS='' read -r completion; do
            if [[ -n "${completion}" && "${completion}" = "${plain}"* ]]; then COMPREPLY+=("${completion}"); fi
        done <<<"${2}"
    }

    # As the names of files bash quotes what it inserts, all but a dollar.
    __keyhole_quote_dollars() {
        local name index
        compopt +o filenames 2>/dev/null
        for index in "${!COMPREPLY[@]}"; do
            printf -v name %q "${COMPREPLY[index]}"
            COMPREPLY[index]="${name//:/\\:}"
        done
    }

    # bash takes a word apart at each `=`: here a list of mount options is one word.
    __keyhole_options() {
        local -a joined=()
        local -i index last=0
        for index in "${!COMP_WORDS[@]}"; do
            if ((index > 1)) && [[ "${COMP_WORDS[index]}" = = || "${COMP_WORDS[index - 1]}" = = ]]; then
                joined[last]+="${COMP_WORDS[index]}"
            else
                last=${#joined[@]}
                joined+=("${COMP_WORDS[index]}")
            fi
            if ((index == COMP_CWORD)); then break; fi
        done
        local -a COMP_WORDS=("${joined[@]}")
        local -i COMP_CWORD=last
        _keyhole "${1}" "${joined[last]}" "${joined[last - 1]}"
        # Options are no names of files, whose commas and signs would get a backslash.
        if [[ "${joined[last - 1]}" = -o || "${joined[last - 1]}" = --option* ]]; then compopt +o filenames 2>/dev/null; fi
        local -r before="${joined[last]%"${joined[last]##*=}"}"
        COMPREPLY=("${COMPREPLY[@]#"${before}"}")
    }

    __keyhole_names() {
        if [[ "${COMP_WORDS[1]-}" = mount ]]; then __keyhole_options "$@"; else _keyhole "$@"; fi
        if [[ "${COMPREPLY[0]-}" = *[/=] ]]; then compopt -o nospace 2>/dev/null; fi
        # Where a folder of the name is there too, bash adds a slash by itself.
        local index
        for index in "${!COMPREPLY[@]}"; do
            if [[ "${COMPREPLY[index]}" = */ && -d "${COMPREPLY[index]/#\~\//"${HOME}/"}" ]]; then
                COMPREPLY[index]="${COMPREPLY[index]%/}"
            fi
        done
        if [[ "${COMPREPLY[*]-}" = *\$* && "${2}" != [\'\"]* ]]; then __keyhole_quote_dollars; fi
        return 0
    }

    complete -o filenames -F __keyhole_names keyhole
    """#

  private static let namesInZsh = #"""
    __keyhole_custom_complete() {
        local -a completions
        completions=("${(@f)"$("${command_name}" "${@}" "${(@Q)command_line}")"}")
        completions=("${completions[@]:0:-1}")
        # A tilde that is inserted as it is would be quoted.
        if [[ "${PREFIX}" = \~/* ]]; then
            compset -P '\~/'
            completions=("${completions[@]#\~/}")
        fi
        compadd -- "${(@)completions:#*[/=]}"
        compadd -S '' -- "${(@M)completions:#*[/=]}"
    }

    __keyhole_cursor_index_in_current_word() {
        local word=''
        if [[ -n "${QIPREFIX}${IPREFIX}${PREFIX}" ]]; then word="${(Q)${(z)LBUFFER}[-1]}"; fi
        printf %s "${#word}"
    }

    """#
}
