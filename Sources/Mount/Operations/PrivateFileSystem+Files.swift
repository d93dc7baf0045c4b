public import Fuse

// Open files and directories, each after the check.

extension PrivateFileSystem {
  /// Passes OPEN on to the tree, or refuses as `lookup` does.
  public func open(_ node: NodeID, flags: Int32, request: Request, reply: consuming OpenReply) {
    if let errno = refusal(request) { return _ = reply.fail(errno) }
    tree.open(self.node(node), flags: flags, request: request, reply: reply)
  }

  /// Passes CREATE on to the tree, or refuses as `lookup` does.
  public func create(
    _ name: Span<UInt8>, in parent: NodeID, mode: UInt32, flags: Int32, request: Request,
    reply: consuming CreateReply
  ) {
    if let errno = refusal(request) { return _ = reply.fail(errno) }
    tree.create(name, in: node(parent), mode: mode, flags: flags, request: request, reply: reply)
  }

  /// Passes READ on to the tree for any process with the descriptor, until `seal()`.
  public func read(
    _ node: NodeID, handle: FileHandle, offset: Int, size: Int, origin: ReadOrigin, request: Request,
    reply: consuming DataReply
  ) {
    if let errno = refusal { return _ = reply.fail(errno) }
    tree.read(
      self.node(node), handle: handle, offset: offset, size: size, origin: origin, request: request,
      reply: reply)
  }

  /// Passes WRITE on to the tree for any process with the descriptor, until `seal()`.
  public func write(
    _ node: NodeID, handle: FileHandle, offset: Int, bytes: Span<UInt8>, origin: WriteOrigin,
    request: Request, reply: consuming WriteReply
  ) {
    if let errno = refusal { return _ = reply.fail(errno) }
    tree.write(
      self.node(node), handle: handle, offset: offset, bytes: bytes, origin: origin, request: request,
      reply: reply)
  }

  /// Passes FLUSH on to the tree for any process with the descriptor, until `seal()`.
  public func flush(
    _ node: NodeID, handle: FileHandle, lockOwner: UInt64, request: Request, reply: consuming EmptyReply
  ) {
    if let errno = refusal { return _ = reply.fail(errno) }
    tree.flush(self.node(node), handle: handle, lockOwner: lockOwner, request: request, reply: reply)
  }

  /// Passes FSYNC on to the tree for any process with the descriptor, until `seal()`.
  public func fsync(
    _ node: NodeID, handle: FileHandle, scope: SyncScope, request: Request, reply: consuming EmptyReply
  ) {
    if let errno = refusal { return _ = reply.fail(errno) }
    tree.fsync(self.node(node), handle: handle, scope: scope, request: request, reply: reply)
  }

  /// Passes FALLOCATE on to the tree for any process with the descriptor, until `seal()`.
  public func fallocate(
    _ node: NodeID, handle: FileHandle, mode: Int32, offset: Int, length: Int, request: Request,
    reply: consuming EmptyReply
  ) {
    if let errno = refusal { return _ = reply.fail(errno) }
    tree.fallocate(
      self.node(node), handle: handle, mode: mode, offset: offset, length: length, request: request,
      reply: reply)
  }

  /// Passes RELEASE on to the tree, also after `seal()`.
  public func release(
    _ node: NodeID, handle: FileHandle, origin: ReleaseOrigin, request: Request, reply: consuming EmptyReply
  ) {
    tree.release(self.node(node), handle: handle, origin: origin, request: request, reply: reply)
  }

  /// Passes FORGET on to the tree.
  public func forget(_ node: NodeID, lookups: UInt64) {
    // The tree's folder was never looked up by the kernel.
    if node != .root { tree.forget(node, lookups: lookups) }
  }
}

// MARK: - Directories

extension PrivateFileSystem {
  /// Passes OPENDIR on to the tree, or refuses as `lookup` does.
  public func opendir(_ node: NodeID, flags: Int32, request: Request, reply: consuming OpenReply) {
    if let errno = refusal(request) { return _ = reply.fail(errno) }
    tree.opendir(self.node(node), flags: flags, request: request, reply: reply)
  }

  /// Passes READDIR on to the tree for any process with the descriptor, until `seal()`.
  public func readdir(
    _ node: NodeID, handle: FileHandle, offset: Int, request: Request, reply: consuming DirectoryReply
  ) {
    if let errno = refusal { return _ = reply.fail(errno) }
    tree.readdir(self.node(node), handle: handle, offset: offset, request: request, reply: reply)
  }

  /// Passes READDIRPLUS on to the tree for any process with the descriptor, until `seal()`.
  public func readdirplus(
    _ node: NodeID, handle: FileHandle, offset: Int, request: Request,
    reply: consuming DirectoryPlusReply
  ) {
    if let errno = refusal { return _ = reply.fail(errno) }
    tree.readdirplus(self.node(node), handle: handle, offset: offset, request: request, reply: reply)
  }

  /// Passes RELEASEDIR on to the tree, also after `seal()`.
  public func releasedir(
    _ node: NodeID, handle: FileHandle, request: Request, reply: consuming EmptyReply
  ) {
    tree.releasedir(self.node(node), handle: handle, request: request, reply: reply)
  }

  /// Passes FSYNCDIR on to the tree for any process with the descriptor, until `seal()`.
  public func fsyncdir(
    _ node: NodeID, handle: FileHandle, scope: SyncScope, request: Request, reply: consuming EmptyReply
  ) {
    if let errno = refusal { return _ = reply.fail(errno) }
    tree.fsyncdir(self.node(node), handle: handle, scope: scope, request: request, reply: reply)
  }
}
