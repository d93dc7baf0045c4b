import Testing

/// Secrets that a person types on a terminal.
@Suite(.timeLimit(.minutes(1))) struct HiddenInputTests {
  /// A shell with job control, and the person before its terminal, who presses Ctrl-Z at the question and types `fg`.
  private static let stopAndContinue = """
    import os, pty, select, signal, sys, termios
    ECHO, MODES = termios.ECHO, 3
    pid, terminal = pty.fork()
    if pid == 0:
      signal.signal(signal.SIGTTOU, signal.SIG_IGN)
      job = os.fork()
      if job == 0:
        os.setpgid(0, 0)
        os.tcsetpgrp(0, os.getpid())
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execvp(sys.argv[1], sys.argv[1:])
      os.waitpid(job, os.WUNTRACED)
      os.tcsetpgrp(0, os.getpgrp())
      modes = termios.tcgetattr(0)
      os.write(1, b"stopped, shown\\n" if modes[MODES] & ECHO else b"stopped, hidden\\n")
      modes[MODES] |= ECHO
      termios.tcsetattr(0, termios.TCSADRAIN, modes)
      os.tcsetpgrp(0, job)
      os.kill(-job, signal.SIGCONT)
      os._exit(os.waitstatus_to_exitcode(os.waitpid(job, 0)[1]))
    shown = b""
    def read_until(text):
      global shown
      while text not in shown:
        try: part = os.read(terminal, 1000)
        except OSError: part = b""
        if not part: return
        shown += part
    read_until(b"Value of")
    os.write(terminal, b"\\x1a")
    read_until(b"stopped")
    for _ in range(2000):
      if not termios.tcgetattr(terminal)[MODES] & ECHO: break
      select.select([], [], [], 0.01)
    os.write(terminal, b"hunter2\\n")
    read_until(b"again: ")
    os.write(terminal, b"hunter2\\n")
    read_until(b"the end")
    print([line.decode() for line in shown.replace(b"\\r", b"").split(b"\\n") if line])
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """

  @Test func questionThatWasStoppedAndContinuedShowsNothing() async throws {
    try await withWorld { world in
      try System.write(world.outside + "/person", Self.stopAndContinue)
      try world.check(
        "python3 ../outside/person keyhole set keychain/generic/s/a/value; keyhole get keychain/generic/s/a/value",
        prints: """
          ['Value of keychain/generic/s/a/value: stopped, shown', 'Value of keychain/generic/s/a/value: ', 'The same again: ']
          hunter2
          """)
    }
  }
}
