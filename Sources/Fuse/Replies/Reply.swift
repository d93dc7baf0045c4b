public import Platform

/// An answer that is owed to the kernel, exactly once.
///
/// It can't be copied, and answering consumes it; dropped unanswered, it answers EIO. It may be kept, moved to another
/// thread and answered there after the operation has returned: an operation that must wait does this (see
/// ``park(onInterrupt:)``), because a blocked worker delays all other requests.
///
/// `Answer` says which operation it belongs to; use it by its names, ``EntryReply``, ``DataReply`` and so on.
public struct Reply<Answer: ~Copyable>: ~Copyable {
  var pending: Pending
  var answer: Answer

  init(_ pending: consuming Pending, _ answer: consuming Answer) {
    self.pending = pending
    self.answer = answer
  }
}

extension Reply: Sendable where Answer: ~Copyable & Sendable {}

extension Reply where Answer: ~Copyable {
  /// Answers with an error.
  ///
  /// Returns false if the request was gone already. In libfuse: `fuse_reply_err`.
  @discardableResult
  public consuming func fail(_ errno: Errno) -> Bool {
    pending.send(error: errno)
  }

  /// True once the caller has been interrupted: by Ctrl-C, by any signal that it handles, or by a deadly one.
  ///
  /// In libfuse: `fuse_req_interrupted`.
  public var isInterrupted: Bool { pending.isInterrupted }

  /// The reading of further requests, for an operation that is about to wait.
  public var reading: RequestReading { pending.reading }

  /// Has `handler` called once if the caller is interrupted before the answer.
  ///
  /// It runs on one of the session's threads, or right here if the interrupt has come already, and must be quick. It
  /// can't hold the reply, so to answer from it use ``park(onInterrupt:)``. A second handler replaces the first. The
  /// request still has to be answered, by convention with EINTR. In libfuse: `fuse_req_interrupt_func`.
  public mutating func onInterrupt(_ handler: @escaping @Sendable () -> Void) {
    pending.onInterrupt(handler)
  }
}
