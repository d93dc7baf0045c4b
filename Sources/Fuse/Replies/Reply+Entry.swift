import CFuse

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
    unsafe pending.answer { request in
      var parameters = entry.parameters
      // SAFETY: `answer` hands over a live request, once; libfuse copies the parameters. So in all replies below.
      return unsafe fuse_reply_entry(request, &parameters)
    }
  }

  /// Answers that there is no such name, and that the kernel may remember so for some seconds.
  ///
  /// In libfuse: `fuse_reply_entry` with node 0.
  @discardableResult
  public consuming func succeed(absentFor seconds: Double) -> Bool {
    unsafe pending.answer { request in
      var parameters = fuse_entry_param()
      parameters.entry_timeout = seconds
      return unsafe fuse_reply_entry(request, &parameters)
    }
  }
}

extension Reply where Answer == CreateAnswer {
  /// Answers with the new node and its open handle.
  ///
  /// Returns false if the request was gone already: then no `release` will come, nor a `forget`, and the handle is the
  /// file system's to drop. In libfuse: `fuse_reply_create`.
  @discardableResult
  public consuming func succeed(_ entry: Entry, handle: FileHandle, options: OpenOptions = []) -> Bool {
    let flags = answer.flags
    return unsafe pending.answer { request in
      var parameters = entry.parameters
      var info = fuse_file_info(flags: flags, handle: handle, options: options)
      return unsafe fuse_reply_create(request, &parameters, &info)
    }
  }
}

extension Reply where Answer == AttributesAnswer {
  /// Answers with the attributes, which the kernel may believe for some seconds.
  ///
  /// In libfuse: `fuse_reply_attr`.
  @discardableResult
  public consuming func succeed(_ attributes: Attributes, timeout seconds: Double) -> Bool {
    unsafe pending.answer { request in
      var status = attributes.status
      return unsafe fuse_reply_attr(request, &status, seconds)
    }
  }
}

extension Reply where Answer == OpenAnswer {
  /// Answers with the open handle.
  ///
  /// Returns false if the request was gone already: then no `release` will come, and the handle is the file system's to
  /// drop. In libfuse: `fuse_reply_open`.
  @discardableResult
  public consuming func succeed(_ handle: FileHandle, options: OpenOptions = []) -> Bool {
    let flags = answer.flags
    return unsafe pending.answer { request in
      var info = fuse_file_info(flags: flags, handle: handle, options: options)
      return unsafe fuse_reply_open(request, &info)
    }
  }
}

extension fuse_file_info {
  fileprivate init(flags: Int32, handle: FileHandle, options: OpenOptions) {
    self.init()
    self.flags = flags
    fh = handle.rawValue
    // SAFETY: writes bits of self only.
    unsafe shim_set_open_options(&self, options.rawValue)
  }
}
