import Testing

@testable import EtcdClient

@Suite struct ReplyTests {
  private func head(_ lines: String...) -> ReplyHead {
    var head = ReplyHead()
    for line in lines { head.take(Array("\(line)\r\n".utf8)) }
    return head
  }

  private func frames(_ bytes: [UInt8], limit: Int = 100) -> MessageFrames {
    var frames = MessageFrames(limit: limit)
    unsafe bytes.withUnsafeBytes { unsafe frames.append($0) }
    return frames
  }

  @Test func statusIsThatOfTheTrailers() {
    let head = head(
      "HTTP/2 200 ", "content-type: application/grpc", "", "grpc-status: 5",
      "Grpc-Message: etcdserver: not%20there 100%")
    #expect(head.isHTTP2 && head.httpStatus == 200 && head.status == 5)
    #expect(head.message == "etcdserver: not there 100%")
  }

  @Test func messageCantChangeATerminal() {
    #expect(head("HTTP/2 200", "grpc-message: a%1B[31mb%0A%C2%9B%C3%A9").message == "a[31mbé")
  }

  @Test func statusThatIsNoNumberIsNone() {
    #expect(head("HTTP/2 200", "grpc-status: -1").status == nil)
    #expect(head("HTTP/2 200", "grpc-status: x").status == nil)
    #expect(head("HTTP/1.1 404 Not Found").isHTTP2 == false)
  }

  @Test func frameIsReadWhenItIsWhole() throws {
    var frames = MessageFrames(limit: 100)
    var messages: [[UInt8]] = []
    for (count, byte) in (MessageFrames.framed([1, 2, 3]) + MessageFrames.framed([])).enumerated() {
      unsafe withUnsafeBytes(of: byte) { unsafe frames.append($0) }
      while let message = try frames.next() { messages.append(message) }
      #expect(messages.count == (count < 7 ? 0 : count < 12 ? 1 : 2))
    }
    #expect(messages == [[1, 2, 3], []])
    #expect(frames.isEmpty)
  }

  @Test func compressedOrTooLongFrameIsRefused() {
    for bytes in [[1, 0, 0, 0, 1, 9], [0, 0, 0, 0, 101], [0, 255, 255, 255, 255]] as [[UInt8]] {
      var frames = frames(bytes)
      #expect(throws: WireError.self) { try frames.next() }
    }
  }

  @Test func framesOfALongStreamDontPileUp() throws {
    var frames = MessageFrames(limit: 1 << 20)
    for number in 0..<200 {
      let message = [UInt8](repeating: UInt8(number), count: 10_000)
      // A rest stays all the time.
      let bytes = MessageFrames.framed(message)
      unsafe bytes.withUnsafeBytes { unsafe frames.append($0) }
      let next = try frames.next()
      #expect(next == message)
    }
    #expect(frames.isEmpty)
  }
}

@Suite struct CallDecisionTests {
  private func decide(_ code: Int, _ message: String, isChange: Bool) -> CallDecision {
    CallDecision(.status(code: code, message: message), isChange: isChange, server: "s")
  }

  @Test(arguments: [
    (1, ""), (2, "?"), (4, "context deadline exceeded"), (13, ""), (14, "etcdserver: request timed out"),
    (14, "etcdserver: leader changed"), (14, "etcdserver: server stopped"),
  ])
  func changeWithoutAnAnswerIsUnknown(_ code: Int, _ message: String) {
    #expect(decide(code, message, isChange: true) == .fail(.outcomeUnknown("s: \(message)")))
    #expect(decide(code, message, isChange: false) == .again(.unavailable("s: \(message)")))
  }

  @Test(arguments: [
    (14, "etcdserver: no leader"), (14, "etcdserver: rpc not supported for learner"),
    (8, "etcdserver: too many requests"),
  ])
  func changeThatWasRefusedIsTriedElsewhere(_ code: Int, _ message: String) {
    #expect(decide(code, message, isChange: true) == .again(.unavailable("s: \(message)")))
  }

  @Test func errorsAreThoseOfTheServers() {
    func error(_ code: Int, _ message: String) -> CallDecision { decide(code, message, isChange: true) }
    #expect(error(8, "etcdserver: mvcc: database space exceeded") == .fail(.noSpace))
    #expect(
      error(8, "grpc: received message larger than max")
        == .fail(.tooLarge("s: grpc: received message larger than max")))
    #expect(
      error(3, "etcdserver: request is too large") == .fail(.tooLarge("s: etcdserver: request is too large")))
    #expect(
      error(11, "etcdserver: mvcc: required revision has been compacted") == .fail(.compacted(oldest: 0)))
    #expect(error(11, "etcdserver: mvcc: required revision is a future revision").isRefused)
    #expect(
      error(7, "etcdserver: permission denied") == .fail(.unauthorized("s: etcdserver: permission denied")))
    #expect(
      error(16, "etcdserver: invalid auth token")
        == .logIn(.unauthorized("s: etcdserver: invalid auth token")))
    #expect(error(3, "etcdserver: key is not provided").isRefused)
    #expect(error(999, "").isRefused)
  }

  @Test func onlyWhatWasSentCanBeUnknown() {
    func decide(_ result: CallResult, _ isChange: Bool) -> CallDecision {
      CallDecision(result, isChange: isChange, server: "s")
    }
    #expect(decide(.unanswered(reason: "r", wasSent: true), true) == .fail(.outcomeUnknown("s: r")))
    #expect(decide(.unanswered(reason: "r", wasSent: false), true) == .again(.unavailable("s: r")))
    #expect(decide(.unanswered(reason: "r", wasSent: true), false) == .again(.unavailable("s: r")))
    #expect(decide(.interrupted(wasSent: true), true) == .fail(.outcomeUnknown("the call was interrupted")))
    #expect(decide(.interrupted(wasSent: false), true) == .fail(.unavailable("the call was interrupted")))
    #expect(decide(.late(wasSent: true), true) == .fail(.outcomeUnknown("s: it did not answer in time")))
  }
}

extension CallDecision {
  fileprivate var isRefused: Bool {
    if case .fail(.refused) = self { true } else { false }
  }
}
