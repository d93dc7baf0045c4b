import Platform

extension Caller.Identity {
  private static let shells: Set<String> = [
    "bash", "busybox", "csh", "dash", "elvish", "fish", "ksh", "mksh", "nu", "sh", "tcsh", "xonsh", "yash",
    "zsh",
  ]

  /// Whether the process is a shell in which a command line is typed: its terminal passes on each key by itself. Shells let the
  /// terminal pass on lines (ICANON) before they run a command, also a builtin one.
  public var editsCommandLine: Bool {
    guard isShell, let terminal,
      let file = try? Descriptor(terminal, [.reading, .noControllingTerminal, .nonBlocking]),
      let modes = try? TerminalModes(of: file.number)
    else { return false }
    return !modes.passesLines
  }
}

extension Caller.Identity {
  fileprivate var isShell: Bool {
    guard let name = executable?.path.split(separator: "/").last else { return false }
    return Self.shells.contains(String(name))
  }
}

extension Caller {
  /// Whether a shell looks at the paths of a command line, for colours or completion: while it is typed, or in a thread beside that
  /// which runs commands. fish does so when its command has the terminal already.
  public var looksAtCommandLine: Bool {
    let identity = identity()
    return identity.editsCommandLine || identity.isShell && isOtherThread
  }
}
