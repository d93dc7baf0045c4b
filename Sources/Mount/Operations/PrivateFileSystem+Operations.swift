public import Fuse

// Each operation is the tree's, after the check.

// MARK: - By name

extension PrivateFileSystem: FileSystem {
  /// Passes LOOKUP on to the tree. Fails with EACCES for a process that is not admitted, with ENOKEY after `seal()`.
  public func lookup(_ name: Span<UInt8>, in parent: NodeID, request: Request, reply: consuming EntryReply) {
    if let errno = refusal(request) { return _ = reply.fail(errno) }
    tree.lookup(name, in: node(parent), request: request, reply: reply)
  }

  /// Passes MKNOD on to the tree, or refuses as `lookup` does.
  public func mknod(
    _ name: Span<UInt8>, in parent: NodeID, mode: UInt32, device: UInt64, request: Request,
    reply: consuming EntryReply
  ) {
    if let errno = refusal(request) { return _ = reply.fail(errno) }
    tree.mknod(name, in: node(parent), mode: mode, device: device, request: request, reply: reply)
  }

  /// Passes MKDIR on to the tree, or refuses as `lookup` does.
  public func mkdir(
    _ name: Span<UInt8>, in parent: NodeID, mode: UInt32, request: Request, reply: consuming EntryReply
  ) {
    if let errno = refusal(request) { return _ = reply.fail(errno) }
    tree.mkdir(name, in: node(parent), mode: mode, request: request, reply: reply)
  }

  /// Passes UNLINK on to the tree, or refuses as `lookup` does.
  public func unlink(
    _ name: Span<UInt8>, in parent: NodeID, request: Request, reply: consuming EmptyReply
  ) {
    if let errno = refusal(request) { return _ = reply.fail(errno) }
    tree.unlink(name, in: node(parent), request: request, reply: reply)
  }

  /// Passes RMDIR on to the tree, or refuses as `lookup` does.
  public func rmdir(
    _ name: Span<UInt8>, in parent: NodeID, request: Request, reply: consuming EmptyReply
  ) {
    if let errno = refusal(request) { return _ = reply.fail(errno) }
    tree.rmdir(name, in: node(parent), request: request, reply: reply)
  }

  /// Passes SYMLINK on to the tree, or refuses as `lookup` does.
  public func symlink(
    _ name: Span<UInt8>, in parent: NodeID, target: Span<UInt8>, request: Request,
    reply: consuming EntryReply
  ) {
    if let errno = refusal(request) { return _ = reply.fail(errno) }
    tree.symlink(name, in: node(parent), target: target, request: request, reply: reply)
  }

  /// Passes RENAME2 on to the tree, or refuses as `lookup` does.
  public func rename(
    _ name: Span<UInt8>, in parent: NodeID, to newName: Span<UInt8>, in newParent: NodeID, flags: UInt32,
    request: Request, reply: consuming EmptyReply
  ) {
    if let errno = refusal(request) { return _ = reply.fail(errno) }
    tree.rename(
      name, in: node(parent), to: newName, in: node(newParent), flags: flags, request: request, reply: reply)
  }

  /// Passes LINK on to the tree, or refuses as `lookup` does.
  public func link(
    _ node: NodeID, as newName: Span<UInt8>, in newParent: NodeID, request: Request,
    reply: consuming EntryReply
  ) {
    if let errno = refusal(request) { return _ = reply.fail(errno) }
    tree.link(self.node(node), as: newName, in: self.node(newParent), request: request, reply: reply)
  }

  /// Passes READLINK on to the tree, or refuses as `lookup` does.
  public func readlink(_ node: NodeID, request: Request, reply: consuming DataReply) {
    if let errno = refusal(request) { return _ = reply.fail(errno) }
    tree.readlink(self.node(node), request: request, reply: reply)
  }

  /// Passes GETATTR on to the tree. That of the root, which mount(8) asks for, is never refused, that of an open file
  /// only after `seal()`.
  public func getattr(
    _ node: NodeID, handle: FileHandle?, request: Request, reply: consuming AttributesReply
  ) {
    let errno = node == .root ? nil : handle == nil ? refusal(request) : refusal
    if let errno { return _ = reply.fail(errno) }
    tree.getattr(self.node(node), handle: handle, request: request, reply: reply)
  }

  /// Passes SETATTR on to the tree, or refuses as `lookup` does; by a handle only after `seal()`.
  public func setattr(
    _ node: NodeID, to changes: AttributeChanges, handle: FileHandle?, request: Request,
    reply: consuming AttributesReply
  ) {
    if let errno = handle == nil ? refusal(request) : refusal { return _ = reply.fail(errno) }
    tree.setattr(self.node(node), to: changes, handle: handle, request: request, reply: reply)
  }

  /// Passes ACCESS on to the tree, or refuses as `lookup` does.
  public func access(_ node: NodeID, mask: Int32, request: Request, reply: consuming EmptyReply) {
    if let errno = refusal(request) { return _ = reply.fail(errno) }
    tree.access(self.node(node), mask: mask, request: request, reply: reply)
  }

  /// Passes STATFS on to the tree for every process.
  public func statfs(_ node: NodeID, request: Request, reply: consuming StatisticsReply) {
    tree.statfs(self.node(node), request: request, reply: reply)
  }

  /// Passes SETXATTR on to the tree, or refuses as `lookup` does.
  public func setxattr(
    _ node: NodeID, name: Span<UInt8>, value: RawSpan, flags: Int32, request: Request,
    reply: consuming EmptyReply
  ) {
    if let errno = refusal(request) { return _ = reply.fail(errno) }
    tree.setxattr(self.node(node), name: name, value: value, flags: flags, request: request, reply: reply)
  }

  /// Passes GETXATTR on to the tree, or refuses as `lookup` does.
  public func getxattr(
    _ node: NodeID, name: Span<UInt8>, request: Request, reply: consuming ExtendedAttributeReply
  ) {
    if let errno = refusal(request) { return _ = reply.fail(errno) }
    tree.getxattr(self.node(node), name: name, request: request, reply: reply)
  }

  /// Passes LISTXATTR on to the tree, or refuses as `lookup` does.
  public func listxattr(_ node: NodeID, request: Request, reply: consuming ExtendedAttributeReply) {
    if let errno = refusal(request) { return _ = reply.fail(errno) }
    tree.listxattr(self.node(node), request: request, reply: reply)
  }

  /// Passes REMOVEXATTR on to the tree, or refuses as `lookup` does.
  public func removexattr(
    _ node: NodeID, name: Span<UInt8>, request: Request, reply: consuming EmptyReply
  ) {
    if let errno = refusal(request) { return _ = reply.fail(errno) }
    tree.removexattr(self.node(node), name: name, request: request, reply: reply)
  }
}

// MARK: - Files

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
    _ node: NodeID, handle: FileHandle, offset: Int, bytes: RawSpan, origin: WriteOrigin,
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
