import Platform

/// The answers of a file system that does not implement an operation: that of a read-only one without contents.
extension FileSystem {
  /// Fails with ENOENT: no name exists.
  public func lookup(_ name: Span<UInt8>, in parent: NodeID, request: Request, reply: consuming EntryReply) {
    reply.fail(.ENOENT)
  }

  /// Does nothing: no node was handed out.
  public func forget(_ node: NodeID, lookups: UInt64) {}

  /// Fails with EPERM: the file system has no operation that creates files.
  public func mknod(
    _ name: Span<UInt8>, in parent: NodeID, mode: UInt32, device: UInt64, request: Request,
    reply: consuming EntryReply
  ) {
    reply.fail(.EPERM)
  }

  /// Fails with EPERM: the file system has no operation that creates directories.
  public func mkdir(
    _ name: Span<UInt8>, in parent: NodeID, mode: UInt32, request: Request, reply: consuming EntryReply
  ) {
    reply.fail(.EPERM)
  }

  /// Fails with EPERM: files can't be removed.
  public func unlink(_ name: Span<UInt8>, in parent: NodeID, request: Request, reply: consuming EmptyReply) {
    reply.fail(.EPERM)
  }

  /// Fails with EPERM: directories can't be removed.
  public func rmdir(_ name: Span<UInt8>, in parent: NodeID, request: Request, reply: consuming EmptyReply) {
    reply.fail(.EPERM)
  }

  /// Fails with EPERM, which symlink(2) names for file systems without symbolic links.
  public func symlink(
    _ name: Span<UInt8>, in parent: NodeID, target: Span<UInt8>, request: Request, reply: consuming EntryReply
  ) {
    reply.fail(.EPERM)
  }

  /// Fails with EPERM: names can't be changed.
  public func rename(
    _ name: Span<UInt8>, in parent: NodeID, to newName: Span<UInt8>, in newParent: NodeID, flags: UInt32,
    request: Request, reply: consuming EmptyReply
  ) {
    reply.fail(.EPERM)
  }

  /// Fails with EPERM, which link(2) names for file systems without hard links.
  public func link(
    _ node: NodeID, as newName: Span<UInt8>, in newParent: NodeID, request: Request,
    reply: consuming EntryReply
  ) {
    reply.fail(.EPERM)
  }

  /// Fails with EINVAL, which readlink(2) names for what is no symbolic link.
  public func readlink(_ node: NodeID, request: Request, reply: consuming DataReply) {
    reply.fail(.EINVAL)
  }

  /// Fails with ENOENT: a file system has to implement it to be of use.
  public func getattr(_ node: NodeID, handle: FileHandle?, request: Request, reply: consuming AttributesReply)
  {
    reply.fail(.ENOENT)
  }

  /// Fails with EPERM: attributes can't be changed.
  public func setattr(
    _ node: NodeID, to changes: AttributeChanges, handle: FileHandle?, request: Request,
    reply: consuming AttributesReply
  ) {
    reply.fail(.EPERM)
  }

  /// Succeeds: the mode of the file decides, or the mount option `default_permissions`.
  public func access(_ node: NodeID, mask: Int32, request: Request, reply: consuming EmptyReply) {
    // The mode decides, or the option `default_permissions`.
    reply.succeed()
  }

  /// Replies with zero blocks and files, blocks of 4,096 bytes and names of 255 bytes.
  public func statfs(_ node: NodeID, request: Request, reply: consuming StatisticsReply) {
    reply.succeed(Statistics())
  }

  /// Succeeds with the handle 0.
  public func open(_ node: NodeID, flags: Int32, request: Request, reply: consuming OpenReply) {
    reply.succeed(FileHandle(rawValue: 0))
  }

  /// Fails with EPERM: files can't be created.
  public func create(
    _ name: Span<UInt8>, in parent: NodeID, mode: UInt32, flags: Int32, request: Request,
    reply: consuming CreateReply
  ) {
    reply.fail(.EPERM)
  }

  /// Fails with EIO.
  public func read(
    _ node: NodeID, handle: FileHandle, offset: Int, size: Int, origin: ReadOrigin, request: Request,
    reply: consuming DataReply
  ) {
    reply.fail(.EIO)
  }

  /// Fails with EROFS.
  public func write(
    _ node: NodeID, handle: FileHandle, offset: Int, bytes: Span<UInt8>, origin: WriteOrigin,
    request: Request,
    reply: consuming WriteReply
  ) {
    reply.fail(.EROFS)
  }

  /// Succeeds: nothing is waiting to be written.
  public func flush(
    _ node: NodeID, handle: FileHandle, lockOwner: UInt64, request: Request, reply: consuming EmptyReply
  ) {
    reply.succeed()
  }

  /// Succeeds: a handle takes no memory.
  public func release(
    _ node: NodeID, handle: FileHandle, origin: ReleaseOrigin, request: Request, reply: consuming EmptyReply
  ) {
    reply.succeed()
  }

  /// Succeeds: nothing is waiting to be written.
  public func fsync(
    _ node: NodeID, handle: FileHandle, scope: SyncScope, request: Request, reply: consuming EmptyReply
  ) {
    reply.succeed()
  }

  /// Fails with EOPNOTSUPP, which fallocate(2) names for file systems without it.
  public func fallocate(
    _ node: NodeID, handle: FileHandle, mode: Int32, offset: Int, length: Int, request: Request,
    reply: consuming EmptyReply
  ) {
    // ENOSYS would have glibc write zeros instead.
    reply.fail(.EOPNOTSUPP)
  }

  /// Fails with ENOSYS: the kernel then answers SEEK_DATA and SEEK_HOLE itself, as for a file without holes.
  public func lseek(
    _ node: NodeID, handle: FileHandle, offset: Int, whence: Int32, request: Request,
    reply: consuming SeekReply
  ) {
    reply.fail(.ENOSYS)
  }

  /// Fails with ENOTTY, which ioctl(2) names for an unknown command.
  public func ioctl(
    _ node: NodeID, handle: FileHandle, command: UInt32, input: Span<UInt8>, outputSize: Int,
    request: Request,
    reply: consuming ControlReply
  ) {
    reply.fail(.ENOTTY)
  }

  /// Fails with ENOSYS: the kernel then reports every file as ready, and does not ask again.
  public func poll(
    _ node: NodeID, handle: FileHandle, events: UInt32, wakeup: PollWakeup?, request: Request,
    reply: consuming PollReply
  ) {
    // The kernel then answers that all files are always ready.
    reply.fail(.ENOSYS)
  }

  /// Succeeds with the handle 0.
  public func opendir(_ node: NodeID, flags: Int32, request: Request, reply: consuming OpenReply) {
    reply.succeed(FileHandle(rawValue: 0))
  }

  /// Fails with ENOTDIR: there are no directories with contents.
  public func readdir(
    _ node: NodeID, handle: FileHandle, offset: Int, request: Request, reply: consuming DirectoryReply
  ) {
    reply.fail(.ENOTDIR)
  }

  /// Fails with ENOSYS: the kernel then uses `readdir`, and does not ask again.
  public func readdirplus(
    _ node: NodeID, handle: FileHandle, offset: Int, request: Request, reply: consuming DirectoryPlusReply
  ) {
    // The kernel asks `readdir` from then on.
    reply.fail(.ENOSYS)
  }

  /// Succeeds: a handle takes no memory.
  public func releasedir(_ node: NodeID, handle: FileHandle, request: Request, reply: consuming EmptyReply) {
    reply.succeed()
  }

  /// Succeeds: nothing is waiting to be written.
  public func fsyncdir(
    _ node: NodeID, handle: FileHandle, scope: SyncScope, request: Request, reply: consuming EmptyReply
  ) {
    reply.succeed()
  }

  /// Fails with EOPNOTSUPP: there are no extended attributes.
  public func setxattr(
    _ node: NodeID, name: Span<UInt8>, value: Span<UInt8>, flags: Int32, request: Request,
    reply: consuming EmptyReply
  ) {
    reply.fail(.EOPNOTSUPP)
  }

  /// Fails with ENODATA: no file has an extended attribute.
  public func getxattr(
    _ node: NodeID, name: Span<UInt8>, request: Request, reply: consuming ExtendedAttributeReply
  ) {
    reply.fail(.ENODATA)
  }

  /// Replies with no names.
  public func listxattr(_ node: NodeID, request: Request, reply: consuming ExtendedAttributeReply) {
    reply.succeed(Span<UInt8>())
  }

  /// Fails with ENODATA: no file has an extended attribute.
  public func removexattr(_ node: NodeID, name: Span<UInt8>, request: Request, reply: consuming EmptyReply) {
    reply.fail(.ENODATA)
  }
}
