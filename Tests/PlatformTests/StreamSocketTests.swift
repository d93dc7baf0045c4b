import Glibc
import Platform
import Testing

@Suite(.timeLimit(.minutes(1))) struct StreamSocketTests {
  /// In ten seconds: no test waits that long.
  private static var soon: ContinuousClock.Instant { .now + .seconds(10) }

  private static func received(_ socket: StreamSocket, _ count: Int = 100) throws -> String? {
    var bytes = [UInt8](repeating: 0, count: count)
    var span = bytes.mutableSpan
    guard let received = try socket.receive(into: &span) else { return nil }
    return String(decoding: bytes[..<received.count], as: UTF8.self)
  }

  /// Both ends of a connection to a listener.
  private static func connect(in folder: String) throws -> (client: StreamSocket, server: StreamSocket) {
    let listener = try StreamListener(at: folder + "/s")
    let client = try StreamSocket(connectingTo: folder + "/s", within: 10)
    try #require(try Poll.wait(for: listener.number, until: soon))
    return (client, try listener.accept())
  }

  @Test func bytesArriveAndTheEndIsSeen() throws {
    let (one, other) = try StreamSocket.pair()
    #expect(try Self.received(other) == nil)
    try one.send(Array("hello".utf8).span, until: Self.soon)
    #expect(try other.wait(until: Self.soon))
    #expect(try Self.received(other, 3) == "hel")
    #expect(try Self.received(other) == "lo")
    one.endSending()
    #expect(try Self.received(other) == "")
    try other.send(Array("bye".utf8).span, until: Self.soon)
    #expect(try Self.received(one) == "bye")
  }

  @Test func bytesGoBehindThoseThatAreThere() throws {
    let (one, other) = try StreamSocket.pair()
    try one.send(Array("lo".utf8).span, until: Self.soon)
    var bytes = Array("hel--".utf8)
    var span = bytes.mutableSpan
    #expect(try other.receive(into: &span, from: 3)?.count == 2)
    #expect(bytes == Array("hello".utf8))
  }

  /// A buffer that is full, and then read.
  @Test func longTextIsSentWholeWhileTheOtherSideReads() throws {
    let (one, other) = try StreamSocket.pair()
    let bytes = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0) }
    let threads = WaitingThreads()
    let read = Promise<[UInt8]>()
    #expect(
      threads.run {
        var (all, chunk) = ([UInt8](), [UInt8](repeating: 0, count: 65536))
        while all.count < bytes.count, (try? other.wait(until: Self.soon)) == true {
          var span = chunk.mutableSpan
          guard let count = try? other.receive(into: &span)?.count, count > 0 else { break }
          all += chunk[..<count]
        }
        read.fulfill(all)
      })
    try one.send(bytes.span, until: Self.soon)
    #expect(read.wait() == bytes)
    threads.finish()
  }

  @Test func otherSideThatTakesNothingIsAnErrorInTime() throws {
    let (one, other) = try StreamSocket.pair()
    let bytes = [UInt8](repeating: 1, count: 3_000_000)
    #expect(throws: Errno.ETIMEDOUT) { try one.send(bytes.span, until: .now + .milliseconds(50)) }
    #expect(throws: Errno.ETIMEDOUT) { try one.send(bytes.span, until: .now - .seconds(1)) }
    withExtendedLifetime(other) {}
  }

  /// SIGPIPE would end the process that runs the tests.
  @Test func otherSideThatIsGoneIsAnErrorAndNoSignal() throws {
    let one = try StreamSocket.pair().0
    #expect(throws: Errno.EPIPE) { try one.send([1].span, until: Self.soon) }
    #expect(try Self.received(one) == "")
  }

  @Test func shutDownEndsAWait() throws {
    let (one, other) = try StreamSocket.pair()
    let threads = WaitingThreads()
    #expect(threads.run { one.shutDown() })
    #expect(try one.wait(until: nil))
    #expect(try Self.received(one) == "")
    #expect(try Self.received(other) == "")
    threads.finish()
  }

  // MARK: Listening

  @Test func listenerKnowsWhoConnectsAndWhoSends() throws {
    try withFolder { folder in
      let (client, server) = try Self.connect(in: folder)
      #expect(try Files.status(folder + "/s")?.permissions == 0o600)
      for end in [client, server] {
        #expect(end.peer.process == getpid() && end.peer.user == getuid())
        #expect(fcntl(end.number, F_GETFD) & FD_CLOEXEC != 0)
      }
      try client.send([1].span, until: Self.soon)
      var bytes = [UInt8](repeating: 0, count: 1)
      var span = bytes.mutableSpan
      let received = try #require(try server.receive(into: &span))
      #expect(received.count == 1 && received.sender == client.peer)
      #expect(ProcessHandle(peerOf: server.number)?.isAlive == true)
    }
  }

  @Test func connectingTellsWhyNot() throws {
    try withFolder { folder in
      let path = folder + "/s"
      #expect(throws: Errno.ENOENT) { _ = try StreamSocket(connectingTo: path, within: 1) }
      do {
        let listener = try StreamListener(at: path)
        #expect(throws: Errno.EAGAIN) { _ = try listener.accept() }
      }
      #expect(throws: Errno.ECONNREFUSED) { _ = try StreamSocket(connectingTo: path, within: 1) }
      // A socket that was left behind is replaced.
      _ = try StreamListener(at: path)
      let long = folder + "/" + String(repeating: "x", count: 108)
      #expect(throws: Errno.ENAMETOOLONG) { _ = try StreamSocket(connectingTo: long, within: 1) }
      #expect(throws: Errno.ENAMETOOLONG) { _ = try StreamListener(at: long) }
    }
  }

  // MARK: Descriptors

  @Test func descriptorComesWithItsBytesAndOthersAreClosed() throws {
    try withFolder { folder in
      let (one, other) = try StreamSocket.pair()
      try Descriptor(folder + "/a", [.writing, .create]).write(Array("content".utf8))
      let file = try Descriptor(folder + "/a", .reading)
      try Self.send([file.number, file.number], with: 7, over: one)
      var bytes = [UInt8](repeating: 0, count: 10)
      var span = bytes.mutableSpan
      let received = try #require(try other.receiveWithDescriptor(into: &span))
      let passed = try #require(received.descriptor)
      #expect(received.count == 1 && bytes[0] == 7)
      #expect(fcntl(passed.number, F_GETFD) & FD_CLOEXEC != 0)
      #expect(try Descriptor(duplicating: passed.number).readToEnd(limit: 100) == Array("content".utf8))
      var rest = bytes.mutableSpan
      #expect(try other.receiveWithDescriptor(into: &rest) == nil)
      try one.send([1].span, until: Self.soon)
      var last = bytes.mutableSpan
      #expect(try other.receiveWithDescriptor(into: &last)?.descriptor == nil)
    }
  }

  /// sendmsg(2) with SCM_RIGHTS.
  private static func send(_ descriptors: [Int32], with byte: UInt8, over socket: StreamSocket) throws {
    // `struct cmsghdr`: its length, SOL_SOCKET and SCM_RIGHTS.
    let length = 16 + descriptors.count * 4
    var control = [UInt8](repeating: 0, count: (length + 7) / 8 * 8)
    unsafe control.withUnsafeMutableBytes { bytes in
      unsafe bytes.storeBytes(of: length, as: Int.self)
      unsafe bytes.storeBytes(of: SOL_SOCKET, toByteOffset: 8, as: Int32.self)
      unsafe bytes.storeBytes(of: 1, toByteOffset: 12, as: Int32.self)
      for (index, number) in descriptors.enumerated() {
        unsafe bytes.storeBytes(of: number, toByteOffset: 16 + index * 4, as: Int32.self)
      }
    }
    var byte = byte
    let size = control.count
    // SAFETY: all of them live until the call returns.
    let sent = unsafe withUnsafeMutableBytes(of: &byte) { byte in
      var part = unsafe iovec(iov_base: byte.baseAddress, iov_len: 1)
      return unsafe withUnsafeMutablePointer(to: &part) { part in
        unsafe control.withUnsafeMutableBytes { bytes in
          var message = unsafe msghdr()
          unsafe (message.msg_iov, message.msg_iovlen) = (part, 1)
          unsafe (message.msg_control, message.msg_controllen) = (bytes.baseAddress, size)
          return unsafe sendmsg(socket.number, &message, 0)
        }
      }
    }
    try #require(sent == 1)
  }
}
