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
    switch shell {
    case .bash: KeyholeCommand.completionScript(for: .bash) + "\n" + Self.namesInBash
    case .zsh:
      KeyholeCommand.completionScript(for: .zsh)
        .replacing(
          "\n_keyhole() {\n", with: "\n" + Self.namesInZsh + "\n_keyhole() {\n", maxReplacements: 1)
    case .fish: KeyholeCommand.completionScript(for: .fish)
    }
  }

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

    __keyhole_names() {
        _keyhole "$@"
        if [[ "${COMPREPLY[0]-}" = */ ]]; then compopt -o nospace 2>/dev/null; fi
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
        compadd -- "${(@)completions:#*/}"
        compadd -S '' -- "${(@M)completions:#*/}"
    }

    __keyhole_cursor_index_in_current_word() {
        local word=''
        if [[ -n "${QIPREFIX}${IPREFIX}${PREFIX}" ]]; then word="${(Q)${(z)LBUFFER}[-1]}"; fi
        printf %s "${#word}"
    }

    """#
}
