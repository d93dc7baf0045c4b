import Platform

extension Caller.Identity {
  private static let shells: Set<String> = [
    "bash", "busybox", "csh", "dash", "elvish", "fish", "ksh", "mksh", "nu", "sh", "tcsh", "xonsh", "yash",
    "zsh",
  ]

  /// Whether the process is a shell in which a command line is typed: its terminal passes on each key by itself. Shells let the
  /// terminal pass on lines (ICANON) before they run a command, also a builtin one.
  public var editsCommandLine: Bool {
    guard let name = executable?.path.split(separator: "/").last, Self.shells.contains(String(name)),
      let terminal, let file = try? Descriptor(terminal, [.reading, .noControllingTerminal, .nonBlocking]),
      let modes = try? TerminalModes(of: file.number)
    else { return false }
    return !modes.passesLines
  }
}
