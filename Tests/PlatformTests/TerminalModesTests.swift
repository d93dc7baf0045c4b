import Glibc
import Platform
import Testing

/// The modes of a pseudo-terminal (pty(7)).
@Suite struct TerminalModesTests {
  private static func withTerminal(_ body: (Int32) throws -> Void) throws {
    let controller = try Descriptor("/dev/ptmx", [.readingAndWriting, .noControllingTerminal])
    // TIOCSPTLCK and TIOCGPTN of ioctl_tty(2), macros that Glibc's module does not show.
    var (lock, number): (Int32, Int32) = (0, -1)
    try #require(unsafe ioctl(controller.number, 0x4004_5431, &lock) == 0)
    try #require(unsafe ioctl(controller.number, 0x8004_5430, &number) == 0)
    let path = "/dev/pts/\(number)"
    let terminal = try Descriptor(path, [.readingAndWriting, .noControllingTerminal])
    try body(terminal.number)
  }

  @Test func typingIsHiddenMeanwhile() throws {
    try Self.withTerminal { terminal in
      let before = try TerminalModes(of: terminal)
      #expect(before.echoes)
      #expect(throws: Errno.EIO) {
        try HiddenTyping.run(on: terminal) {
          #expect(try !TerminalModes(of: terminal).echoes)
          throw Errno.EIO
        }
      }
      #expect(try TerminalModes(of: terminal).echoes)
      try HiddenTyping.run(on: terminal) { try before.set(on: terminal) }
      #expect(try TerminalModes(of: terminal).echoes)
    }
  }

  /// The inner run ends first; the modes come back with the outer one, or at `end()`, after which neither has an effect.
  @Test func typingIsHiddenOnceForRunsInARun() throws {
    try Self.withTerminal { terminal in
      let shown = try HiddenTyping.run(on: terminal) { () throws(Errno) -> [Bool] in
        let echoes = { () throws(Errno) in try TerminalModes(of: terminal).echoes }
        var shown = [try HiddenTyping.run(on: terminal, echoes), try echoes()]
        HiddenTyping.end()
        shown.append(try echoes())
        shown += [try HiddenTyping.run(on: terminal, echoes), try echoes()]
        return shown
      }
      #expect(shown == [false, false, true, false, true])
      #expect(try TerminalModes(of: terminal).echoes)
    }
  }

  /// The state opens its device each time: it outlives what else has it open.
  @Test func aStateHidesAndRestores() throws {
    try Self.withTerminal { terminal in
      let device = "/dev/fd/\(terminal)"
      let state = try #require(TerminalState(device))
      #expect(!state.isHidden)
      state.hideTyping()
      #expect(try !TerminalModes(of: terminal).echoes && state.isHidden)
      // One that finds it hidden leaves it so.
      let inner = try #require(TerminalState(device))
      inner.hideTyping()
      inner.restore(drawn: false)
      #expect(try !TerminalModes(of: terminal).echoes)
      state.restore(drawn: false, hidden: true)
      #expect(try TerminalModes(of: terminal).echoes && !state.isHidden)
      #expect(TerminalState("/dev/null") == nil)
    }
  }

  @Test func otherFilesHaveNoModes() throws {
    let file = try Descriptor("/dev/null", .reading)
    #expect(throws: Errno.ENOTTY) { try TerminalModes(of: file.number) }
    #expect(throws: Errno.EBADF) { try TerminalModes(of: -1) }
    #expect(HiddenTyping.run(on: file.number) { 7 } == 7)
  }
}
