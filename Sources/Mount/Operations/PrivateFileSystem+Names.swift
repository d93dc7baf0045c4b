public import Fuse

// Each operation is the tree's, after the check.

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
    _ node: NodeID, name: Span<UInt8>, value: Span<UInt8>, flags: Int32, request: Request,
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
