import CFuse
import Platform

/// Owed by `read` and `readlink`.
public typealias DataReply = Reply<DataAnswer>
/// Owed by `getxattr` and `listxattr`.
public typealias ExtendedAttributeReply = Reply<ExtendedAttributeAnswer>

/// Marks a ``DataReply``, and knows how much the caller takes.
public struct DataAnswer: Sendable {
  let limit: Int
  var flags: Int32 = 0
}
/// Marks an ``ExtendedAttributeReply``, and knows how much the caller takes.
public struct ExtendedAttributeAnswer: Sendable {
  let size: Int
}

extension Reply where Answer == DataAnswer {
  /// How many bytes the caller takes at most.
  public var limit: Int { answer.limit }

  /// Whether the file's descriptor has O_NONBLOCK at this moment: EAGAIN is wanted instead of a wait.
  public var isNonBlocking: Bool { answer.flags & O_NONBLOCK != 0 }

  /// Answers with bytes from ordinary memory, cut to ``limit``; none means the end of the file.
  ///
  /// Not from `memfd_secret` memory, which the kernel can't read: the caller gets EIO. For that there is
  /// ``succeed(secret:)``. In libfuse: `fuse_reply_buf`.
  @discardableResult
  public consuming func succeed(_ bytes: Span<UInt8>) -> Bool {
    pending.send(bytes.extracting(first: answer.limit))
  }

  /// Answers with bytes that must leave no copy, cut to ``limit``.
  ///
  /// They go through a locked buffer that is in no core file, and that is zeroed when the kernel has taken them: from
  /// `memfd_secret` memory the kernel can't read itself. Answers ENOMEM when no memory can be locked (RLIMIT_MEMLOCK).
  @discardableResult
  public consuming func succeed(secret bytes: Span<UInt8>) -> Bool {
    let bytes = bytes.extracting(first: answer.limit)
    guard bytes.count > 0 else { return succeed(bytes) }
    guard let buffer = BounceBuffer(copying: bytes) else { return fail(.ENOMEM) }
    return pending.send(buffer)
  }
}

extension Reply where Answer == ExtendedAttributeAnswer {
  /// How many bytes the caller takes; 0 asks for the length only.
  public var size: Int { answer.size }

  /// Answers with the value, or its length if that was asked; ERANGE if it does not fit.
  ///
  /// Of `listxattr` the value is the names, each ended by a zero byte. In libfuse: `fuse_reply_buf` and
  /// `fuse_reply_xattr`.
  @discardableResult
  public consuming func succeed(_ value: Span<UInt8>) -> Bool {
    let size = answer.size
    if size == 0 { return pending.send(length: value.count) }
    guard value.count <= size else { return fail(.ERANGE) }
    return pending.send(value)
  }
}
