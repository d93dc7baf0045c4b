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

  @Test func echoIsTurnedOffAndOn() throws {
    try Self.withTerminal { terminal in
      let before = try TerminalModes(of: terminal)
      #expect(before.echoes)
      var silent = before
      silent.echoes = false
      try silent.set(on: terminal, .flushed)
      #expect(try !TerminalModes(of: terminal).echoes)
      try before.set(on: terminal, .now)
      #expect(try TerminalModes(of: terminal).echoes)
    }
  }

  @Test func otherFilesHaveNoModes() throws {
    let file = try Descriptor("/dev/null", .reading)
    #expect(throws: Errno.ENOTTY) { try TerminalModes(of: file.number) }
    #expect(throws: Errno.EBADF) { try TerminalModes(of: -1) }
  }
}
