/// Owed by `lookup`, `mknod`, `mkdir`, `symlink` and `link`.
public typealias EntryReply = Reply<EntryAnswer>
/// Owed by `create`.
public typealias CreateReply = Reply<CreateAnswer>
/// Owed by `getattr` and `setattr`.
public typealias AttributesReply = Reply<AttributesAnswer>
/// Owed by `open` and `opendir`.
public typealias OpenReply = Reply<OpenAnswer>

/// Marks an ``EntryReply``.
public struct EntryAnswer: Sendable {}
/// Marks a ``CreateReply``.
public struct CreateAnswer: Sendable {
  let flags: Int32
}
/// Marks an ``AttributesReply``.
public struct AttributesAnswer: Sendable {}
/// Marks an ``OpenReply``.
public struct OpenAnswer: Sendable {
  let flags: Int32
}

extension Reply where Answer == EntryAnswer {
  /// Answers with the node, whose lookups count one more from now on.
  ///
  /// Returns false if the request was gone already: then the kernel has not counted it and will not forget it. In
  /// libfuse: `fuse_reply_entry`.
  @discardableResult
  public consuming func succeed(_ entry: Entry) -> Bool {
    pending.send(entry)
  }

  /// Answers that there is no such name, and that the kernel may remember so for some seconds.
  ///
  /// In libfuse: `fuse_reply_entry` with node 0.
  @discardableResult
  public consuming func succeed(absentFor seconds: Double) -> Bool {
    pending.send(absentFor: seconds)
  }
}

extension Reply where Answer == CreateAnswer {
  /// Answers with the new node and its open handle.
  ///
  /// Returns false if the request was gone already: then no `release` will come, nor a `forget`, and the handle is the
  /// file system's to drop. In libfuse: `fuse_reply_create`.
  @discardableResult
  public consuming func succeed(_ entry: Entry, handle: FileHandle, options: OpenOptions = []) -> Bool {
    pending.send(entry, handle, options, flags: answer.flags)
  }
}

extension Reply where Answer == AttributesAnswer {
  /// Answers with the attributes, which the kernel may believe for some seconds.
  ///
  /// In libfuse: `fuse_reply_attr`.
  @discardableResult
  public consuming func succeed(_ attributes: Attributes, timeout seconds: Double) -> Bool {
    pending.send(attributes, timeout: seconds)
  }
}

extension Reply where Answer == OpenAnswer {
  /// Answers with the open handle.
  ///
  /// Returns false if the request was gone already: then no `release` will come, and the handle is the file system's to
  /// drop. In libfuse: `fuse_reply_open`.
  @discardableResult
  public consuming func succeed(_ handle: FileHandle, options: OpenOptions = []) -> Bool {
    pending.send(handle, options, flags: answer.flags)
  }
}
