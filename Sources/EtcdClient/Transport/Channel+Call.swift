extension Channel {
  /// One message each way. `patience` is the longest time until the reply begins, and at `limit` it has to be there.
  func call(
    _ call: EtcdCall, metadata: [String], patience: Duration, until limit: ContinuousClock.Instant,
    mostBytes: Int, _ interruption: CallInterruption
  ) -> CallResult {
    let begin = ContinuousClock.now
    let milliseconds = Int(max(1, begin.duration(to: limit) / .milliseconds(1)))
    do throws(ClusterError) {
      try self.begin(
        call.method.rawValue, sending: call.message, isComplete: true,
        metadata: metadata + ["grpc-timeout: \(milliseconds)m"], limit: mostBytes)
    } catch {
      return .unanswered(reason: "\(error)", wasSent: false)
    }
    return interruption.waking({ [self] in wake() }) {
      while !interruption.isInterrupted {
        let deadline = head.httpStatus == 0 ? min(limit, begin + patience) : limit
        if let end = advance(until: deadline) { return CallResult(self, end) }
        if deadline <= .now, head.httpStatus == 0 || limit <= .now {
          return .late(wasSent: didSend)
        }
      }
      return .interrupted(wasSent: didSend)
    }
  }
}
