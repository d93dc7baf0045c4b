/// A stream with one watch, which asks for progress where nothing comes, and notices that the server does not answer any more.
struct WatchStream {
  private let channel: Channel
  private let silence: Duration
  private let patience: Duration
  /// When the server has to have sent something: a reply is due; nil: none is.
  private var due: ContinuousClock.Instant?
  private var lastReply = ContinuousClock.now
  /// The stream has ended; messages may be left.
  private var ended: StreamEnd?

  /// The reply to the request that began the stream is due.
  init(_ channel: Channel, silence: Duration, patience: Duration) {
    (self.channel, self.silence, self.patience) = (channel, silence, patience)
    due = .now + patience
  }

  /// Has the server send something, if nothing is due anyway.
  mutating func askForProgress() {
    guard due == nil else { return }
    channel.send(WatchRequest.progress.wire.bytes)
    due = .now + patience
  }

  /// The next reply; nil: there is none yet, and `shouldReturn` says that something else is to be done, or time has passed.
  ///
  /// - Throws: `unavailable` at the end of the stream, or where the server does not answer; `unauthorized`.
  mutating func next(_ shouldReturn: () -> Bool) throws(ClusterError) -> WatchReply? {
    while true {
      if let reply = try read() {
        due = nil
        lastReply = .now
        return reply
      }
      if let ended { throw error(ended) }
      if shouldReturn() { return nil }
      let now = ContinuousClock.now
      if let due, due <= now { throw .unavailable("\(channel.endpoint): the watch gets no answer") }
      if due == nil, lastReply + silence <= now { askForProgress() }
      ended = channel.advance(until: due ?? lastReply + silence)
    }
  }

  private func read() throws(ClusterError) -> WatchReply? {
    do throws(WireError) {
      guard let message = try channel.nextMessage() else { return nil }
      return try WatchReply(message)
    } catch {
      throw .unavailable("\(channel.endpoint): the reply is malformed")
    }
  }

  private func error(_ end: StreamEnd) -> ClusterError {
    let result = CallResult(channel, end)
    // A regular end has no message here, and is none for a watch.
    switch CallDecision(result, isChange: false, server: channel.endpoint.description) {
    case .logIn(let error): return error
    case .again(let error), .fail(let error): return error
    case .done: return .unavailable("\(channel.endpoint): the watch was ended")
    }
  }
}
