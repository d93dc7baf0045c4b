import Glibc
import Platform
import Testing

@testable import Service

@Suite struct StartReportTests {
  @Test func reportEndsThePipe() throws {
    let pipe = try PipeEnds()
    StartReport(try Descriptor(copying: pipe.writer)).send("ready")
    #expect(try pipe.readerOnly().readToEnd(limit: 100) == Array("ready".utf8))
  }

  /// A mount that fails after its start: by then another file has the number of the descriptor.
  @Test func secondReportWritesToNoOtherFile() throws {
    let (pipe, other) = (try StreamSocket.pair(), try StreamSocket.pair())
    // A number that nothing else in this process gets.
    let number = fcntl(pipe.0.number, F_DUPFD_CLOEXEC, 900)
    try #require(number >= 900)
    let report = StartReport(Descriptor(owning: number))
    report.send("ready")
    try #require(dup2(other.0.number, number) == number)
    report.send("the mount failed")
    #expect(fcntl(number, F_GETFD) >= 0)
    close(number)
    #expect(!Poll.isReady(other.1.number))
    withExtendedLifetime((pipe, other)) {}
  }
}
