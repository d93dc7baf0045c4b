public import Platform

/// Owed by operations that only succeed or fail.
public typealias EmptyReply = Reply<EmptyAnswer>
/// Owed by `write`.
public typealias WriteReply = Reply<WriteAnswer>
/// Owed by `statfs`.
public typealias StatisticsReply = Reply<StatisticsAnswer>
/// Owed by `lseek`.
public typealias SeekReply = Reply<SeekAnswer>
/// Owed by `poll`.
public typealias PollReply = Reply<PollAnswer>
/// Owed by `ioctl`.
public typealias ControlReply = Reply<ControlAnswer>

/// Marks an ``EmptyReply``.
public struct EmptyAnswer: Sendable {}
/// Marks a ``WriteReply``, and knows the received bytes.
public struct WriteAnswer: Sendable {
  let payload: WritePayload
}
/// Marks a ``StatisticsReply``.
public struct StatisticsAnswer: Sendable {}
/// Marks a ``SeekReply``.
public struct SeekAnswer: Sendable {}
/// Marks a ``PollReply``.
public struct PollAnswer: Sendable {}
/// Marks a ``ControlReply``.
public struct ControlAnswer: Sendable {}

extension Reply where Answer == EmptyAnswer {
  /// Answers that it is done.
  ///
  /// Returns false if the request was gone already. In libfuse: `fuse_reply_err` with 0.
  @discardableResult
  public consuming func succeed() -> Bool {
    pending.send(error: nil)
  }
}

extension Reply where Answer == WriteAnswer {
  /// Answers how many bytes were taken, after zeroing them in libfuse's buffer.
  ///
  /// Fewer than came is a short write. In libfuse: `fuse_reply_write`.
  @discardableResult
  public consuming func succeed(written count: Int) -> Bool {
    answer.payload.scrub()
    return pending.send(written: count)
  }

  /// Answers with an error, after zeroing the bytes in libfuse's buffer.
  @discardableResult
  public consuming func fail(_ errno: Errno) -> Bool {
    answer.payload.scrub()
    return pending.send(error: errno)
  }
}

extension Reply where Answer == StatisticsAnswer {
  /// Answers with the room there is.
  ///
  /// In libfuse: `fuse_reply_statfs`.
  @discardableResult
  public consuming func succeed(_ statistics: Statistics) -> Bool {
    pending.send(statistics)
  }
}

extension Reply where Answer == SeekAnswer {
  /// Answers with the offset that was found, in bytes from the start.
  ///
  /// In libfuse: `fuse_reply_lseek`.
  @discardableResult
  public consuming func succeed(offset: Int) -> Bool {
    pending.send(offset: offset)
  }
}

extension Reply where Answer == PollAnswer {
  /// Answers which events are ready now, as in `poll(2)`.
  ///
  /// In libfuse: `fuse_reply_poll`.
  @discardableResult
  public consuming func succeed(events: UInt32) -> Bool {
    pending.send(events: events)
  }
}

extension Reply where Answer == ControlAnswer {
  /// Answers with the call's result and the bytes for its caller.
  ///
  /// In libfuse: `fuse_reply_ioctl`.
  @discardableResult
  public consuming func succeed(result: Int32, output: Span<UInt8>) -> Bool {
    pending.send(result: result, output: output)
  }
}
