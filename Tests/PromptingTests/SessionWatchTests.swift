import Glibc
import Platform
import Synchronization
import Testing

@testable import LoginSessions

@Suite(.serialized, .timeLimit(.minutes(1))) struct SessionWatchTests {
  /// A command may be over before the thread of its watch has connected.
  @Test func watchThatIsEndedBeforeItConnectsEndsItsThread() throws {
    let bus = try SilentBus()
    defer { bus.end() }
    let work = Mutex<(@Sendable () -> Void)?>(nil)
    let watch = SessionWatch(onThread: { thread in work.withLock { $0 = thread } }) { _ in }
    watch.end()
    // Returns: the bus would never send anything.
    work.withLock { $0 }?()
    #expect(watch.failure == "the system bus is gone")
  }

  @Test func watchIsEndedWhileItsThreadWaits() throws {
    let bus = try SilentBus()
    defer { bus.end() }
    let threads = WaitingThreads()
    let watch = SessionWatch(onThread: { thread in _ = threads.run(thread) }) { _ in }
    bus.waitForCalls()
    watch.end()
    threads.finish()
    #expect(watch.failure == "the system bus is gone")
  }
}

/// A system bus that accepts one connection, and says nothing after its greeting.
private final class SilentBus: Sendable {
  private let path = "/tmp/bus.\(getpid())"
  private let threads = WaitingThreads()
  private let hasCalls = Promise<Void>()

  init() throws {
    let listener = Mutex<StreamListener?>(try StreamListener(at: path))
    unsafe setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=\(path)", 1)
    let isTaken = threads.run { [hasCalls] in
      guard let listener = listener.withLock({ $0.take() }) else { return }
      _ = try? Poll.wait(for: listener.number, until: .now + .seconds(20))
      guard let connection = try? listener.accept() else { return }
      Self.serve(connection, hasCalls)
    }
    try #require(isTaken)
  }

  /// Returns when the client has called a method.
  func waitForCalls() { hasCalls.wait() }

  /// Returns when the client has closed its connection.
  func end() {
    threads.finish()
    unsafe unsetenv("DBUS_SYSTEM_BUS_ADDRESS")
    unsafe unlink(path)
  }

  private static func serve(_ connection: StreamSocket, _ hasCalls: Promise<Void>) {
    var bytes = [UInt8](repeating: 0, count: 4096)
    while (try? connection.wait(until: .now + .seconds(20))) == true {
      var span = bytes.mutableSpan
      guard let count = try? connection.receive(into: &span)?.count, count > 0 else { return }
      let text = String(decoding: bytes[..<count], as: UTF8.self)
      let answer =
        text.contains("AUTH") ? "OK 0123\r\n" : text.contains("NEGOTIATE") ? "AGREE_UNIX_FD\r\n" : ""
      if text.contains("AddMatch") { hasCalls.fulfill(()) }
      try? connection.send(Array(answer.utf8).span, until: .now + .seconds(20))
    }
  }
}
