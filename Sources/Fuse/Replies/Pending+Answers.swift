import CFuse
import Platform

// SAFETY, for all answers: `answer` hands over a live request, once, and libfuse copies what it is given before it returns.

/// The answers of libfuse, one for each of its functions. All return false if the request was gone already.
extension Pending {
  /// `fuse_reply_err`; nil: the operation is done.
  consuming func send(error: Errno?) -> Bool {
    unsafe answer { unsafe fuse_reply_err($0, error?.rawValue ?? 0) }
  }

  /// `fuse_reply_entry`.
  consuming func send(_ entry: Entry) -> Bool {
    unsafe answer { request in
      var parameters = entry.parameters
      return unsafe fuse_reply_entry(request, &parameters)
    }
  }

  /// `fuse_reply_entry` with node 0: no such name, for some seconds.
  consuming func send(absentFor seconds: Double) -> Bool {
    unsafe answer { request in
      var parameters = fuse_entry_param()
      parameters.entry_timeout = seconds
      return unsafe fuse_reply_entry(request, &parameters)
    }
  }

  /// `fuse_reply_create`. `flags`: those of the request.
  consuming func send(_ entry: Entry, _ handle: FileHandle, _ options: OpenOptions, flags: Int32) -> Bool {
    unsafe answer { request in
      var parameters = entry.parameters
      var info = fuse_file_info(flags: flags, handle: handle, options: options)
      return unsafe fuse_reply_create(request, &parameters, &info)
    }
  }

  /// `fuse_reply_open`. `flags`: those of the request.
  consuming func send(_ handle: FileHandle, _ options: OpenOptions, flags: Int32) -> Bool {
    unsafe answer { request in
      var info = fuse_file_info(flags: flags, handle: handle, options: options)
      return unsafe fuse_reply_open(request, &info)
    }
  }

  /// `fuse_reply_attr`; the kernel may believe them for some seconds.
  consuming func send(_ attributes: Attributes, timeout seconds: Double) -> Bool {
    unsafe answer { request in
      var status = attributes.status
      return unsafe fuse_reply_attr(request, &status, seconds)
    }
  }

  /// `fuse_reply_statfs`.
  consuming func send(_ statistics: Statistics) -> Bool {
    unsafe answer { request in
      var status = statistics.status
      return unsafe fuse_reply_statfs(request, &status)
    }
  }

  /// `fuse_reply_buf`.
  consuming func send(_ bytes: Span<UInt8>) -> Bool {
    unsafe answer(bytes) { unsafe fuse_reply_buf($0, $1.baseAddress, $1.count) }
  }

  /// `fuse_reply_buf` with what was added.
  consuming func send(_ entries: borrowing DirectoryBuffer) -> Bool {
    unsafe answer { unsafe entries.send($0) }
  }

  /// `fuse_reply_buf` from locked memory, which is zeroed afterwards.
  consuming func send(_ buffer: consuming BounceBuffer) -> Bool {
    unsafe answer { unsafe fuse_reply_buf($0, buffer.start, buffer.byteCount) }
  }

  /// `fuse_reply_xattr`: the length of an extended attribute in bytes.
  consuming func send(length: Int) -> Bool {
    unsafe answer { unsafe fuse_reply_xattr($0, length) }
  }

  /// `fuse_reply_write`.
  consuming func send(written count: Int) -> Bool {
    unsafe answer { unsafe fuse_reply_write($0, count) }
  }

  /// `fuse_reply_lseek`.
  consuming func send(offset: Int) -> Bool {
    unsafe answer { unsafe fuse_reply_lseek($0, offset) }
  }

  /// `fuse_reply_poll`.
  consuming func send(events: UInt32) -> Bool {
    unsafe answer { unsafe fuse_reply_poll($0, events) }
  }

  /// `fuse_reply_ioctl`.
  consuming func send(result: Int32, output: Span<UInt8>) -> Bool {
    unsafe answer(output) { unsafe fuse_reply_ioctl($0, result, $1.baseAddress, $1.count) }
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
