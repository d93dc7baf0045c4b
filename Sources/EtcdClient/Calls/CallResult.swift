/// The end of one attempt to call one server.
enum CallResult: Equatable {
  case reply([UInt8])
  /// The server refuses, or could not do it.
  case status(code: Int, message: String)
  /// There is no reply.
  case unanswered(reason: String, wasSent: Bool)
  /// There was none in time.
  case late(wasSent: Bool)
  case interrupted(wasSent: Bool)

  /// Reads what a stream with one message each way has received.
  init(_ channel: Channel, _ end: StreamEnd) {
    let head = channel.head
    if case .failed(let reason) = end, head.status == nil {
      self = .unanswered(reason: reason, wasSent: channel.didSend)
      return
    }
    guard head.isHTTP2, let status = head.status else {
      let reason =
        head.httpStatus == 200
        ? "the connection ended before the reply" : "it is no server of etcd (HTTP \(head.httpStatus))"
      self = .unanswered(reason: reason, wasSent: channel.didSend)
      return
    }
    guard status == 0 else {
      self = .status(code: status, message: head.message)
      return
    }
    guard let message = try? channel.nextMessage(), !channel.hasRest else {
      self = .unanswered(reason: "the reply is malformed", wasSent: true)
      return
    }
    self = .reply(message)
  }
}

/// The next step of a caller after the end of an attempt.
enum CallDecision: Equatable {
  case done([UInt8])
  /// Another server may do it; nothing was done.
  case again(ClusterError)
  /// A new token may help; nothing was done.
  case logIn(ClusterError)
  case fail(ClusterError)

  /// `isChange`: a call that was sent and not answered may have changed something.
  init(_ result: CallResult, isChange: Bool, server: String) {
    switch result {
    case .reply(let bytes): self = .done(bytes)
    case .interrupted(let wasSent):
      let text = "the call was interrupted"
      self = .fail(wasSent && isChange ? .outcomeUnknown(text) : .unavailable(text))
    case .unanswered(let reason, let wasSent):
      let text = "\(server): \(reason)"
      self = wasSent && isChange ? .fail(.outcomeUnknown(text)) : .again(.unavailable(text))
    case .late(let wasSent):
      let text = "\(server): it did not answer in time"
      self = wasSent && isChange ? .fail(.outcomeUnknown(text)) : .again(.unavailable(text))
    case .status(let code, let message):
      self = Self.decide(code, message, isChange, "\(server): \(message)")
    }
  }

  /// By the code where it says enough, else by the text, which is that of `rpctypes` of etcd: several errors share a code.
  private static func decide(
    _ code: Int, _ message: String, _ isChange: Bool, _ text: String
  ) -> CallDecision {
    switch GRPCCode(rawValue: code) {
    case .resourceExhausted:
      if message.contains("database space exceeded") { return .fail(.noSpace) }
      if message.contains("too many requests") { return .again(.unavailable(text)) }
      return .fail(.tooLarge(text))
    case .outOfRange where message.contains("compacted"): return .fail(.compacted(oldest: 0))
    case .invalidArgument where message.contains("too large") || message.contains("too many operations"):
      return .fail(.tooLarge(text))
    case .unauthenticated: return .logIn(.unauthorized(text))
    case .permissionDenied: return .fail(.unauthorized(text))
    case .invalidArgument where message.contains("revision of auth store is old"),
      .unknown where message.contains("auth: revision in header is old"):
      return .logIn(.unauthorized(text))
    case .invalidArgument
    where message.contains("authentication failed") || message.contains("user name is empty"):
      return .fail(.unauthorized(text))
    case .unavailable where isRefusal(message): return .again(.unavailable(text))
    case .unavailable, .deadlineExceeded, .cancelled, .unknown, .internal:
      return isChange ? .fail(.outcomeUnknown(text)) : .again(.unavailable(text))
    default: return .fail(.refused(text))
    }
  }

  /// The server said so before it passed the request on to the others.
  private static func isRefusal(_ message: String) -> Bool {
    ["etcdserver: no leader", "etcdserver: rpc not supported for learner"].contains(message)
  }
}

/// https://grpc.io/docs/guides/status-codes/
private enum GRPCCode: Int {
  case cancelled = 1
  case unknown = 2
  case invalidArgument = 3
  case deadlineExceeded = 4
  case permissionDenied = 7
  case resourceExhausted = 8
  case outOfRange = 11
  case `internal` = 13
  case unavailable = 14
  case unauthenticated = 16
}
