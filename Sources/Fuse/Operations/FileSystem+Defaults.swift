/// The answers of a file system that does not implement an operation: that of a read-only one without contents.
extension FileSystem {
  public func lookup(_ name: Span<UInt8>, in parent: NodeID, request: Request, reply: consuming EntryReply) {
    reply.fail(.ENOENT)
  }

  public func forget(_ node: NodeID, lookups: UInt64) {}

  public func mknod(
    _ name: Span<UInt8>, in parent: NodeID, mode: UInt32, device: UInt64, request: Request,
    reply: consuming EntryReply
  ) {
    reply.fail(.EPERM)
  }

  public func mkdir(
    _ name: Span<UInt8>, in parent: NodeID, mode: UInt32, request: Request, reply: consuming EntryReply
  ) {
    reply.fail(.EPERM)
  }

  public func unlink(_ name: Span<UInt8>, in parent: NodeID, request: Request, reply: consuming EmptyReply) {
    reply.fail(.EPERM)
  }

  public func rmdir(_ name: Span<UInt8>, in parent: NodeID, request: Request, reply: consuming EmptyReply) {
    reply.fail(.EPERM)
  }

  public func symlink(
    _ name: Span<UInt8>, in parent: NodeID, target: Span<UInt8>, request: Request, reply: consuming EntryReply
  ) {
    reply.fail(.EPERM)
  }

  public func rename(
    _ name: Span<UInt8>, in parent: NodeID, to newName: Span<UInt8>, in newParent: NodeID, flags: UInt32,
    request: Request, reply: consuming EmptyReply
  ) {
    reply.fail(.EPERM)
  }

  public func link(
    _ node: NodeID, as newName: Span<UInt8>, in newParent: NodeID, request: Request,
    reply: consuming EntryReply
  ) {
    reply.fail(.EPERM)
  }

  public func readlink(_ node: NodeID, request: Request, reply: consuming DataReply) {
    reply.fail(.EINVAL)
  }

  public func getattr(_ node: NodeID, handle: FileHandle?, request: Request, reply: consuming AttributesReply)
  {
    reply.fail(.ENOENT)
  }

  public func setattr(
    _ node: NodeID, to changes: AttributeChanges, handle: FileHandle?, request: Request,
    reply: consuming AttributesReply
  ) {
    reply.fail(.EPERM)
  }

  public func access(_ node: NodeID, mask: Int32, request: Request, reply: consuming EmptyReply) {
    // The mode decides, or the option `default_permissions`.
    reply.succeed()
  }

  public func statfs(_ node: NodeID, request: Request, reply: consuming StatisticsReply) {
    reply.succeed(Statistics())
  }

  public func open(_ node: NodeID, flags: Int32, request: Request, reply: consuming OpenReply) {
    reply.succeed(FileHandle(rawValue: 0))
  }

  public func create(
    _ name: Span<UInt8>, in parent: NodeID, mode: UInt32, flags: Int32, request: Request,
    reply: consuming CreateReply
  ) {
    reply.fail(.EPERM)
  }

  public func read(
    _ node: NodeID, handle: FileHandle, offset: Int, size: Int, origin: ReadOrigin, request: Request,
    reply: consuming DataReply
  ) {
    reply.fail(.EIO)
  }

  public func write(
    _ node: NodeID, handle: FileHandle, offset: Int, bytes: RawSpan, origin: WriteOrigin, request: Request,
    reply: consuming WriteReply
  ) {
    reply.fail(.EROFS)
  }

  public func flush(
    _ node: NodeID, handle: FileHandle, lockOwner: UInt64, request: Request, reply: consuming EmptyReply
  ) {
    reply.succeed()
  }

  public func release(
    _ node: NodeID, handle: FileHandle, origin: ReleaseOrigin, request: Request, reply: consuming EmptyReply
  ) {
    reply.succeed()
  }

  public func fsync(
    _ node: NodeID, handle: FileHandle, scope: SyncScope, request: Request, reply: consuming EmptyReply
  ) {
    reply.succeed()
  }

  public func fallocate(
    _ node: NodeID, handle: FileHandle, mode: Int32, offset: Int, length: Int, request: Request,
    reply: consuming EmptyReply
  ) {
    // ENOSYS would have glibc write zeros instead.
    reply.fail(.EOPNOTSUPP)
  }

  public func lseek(
    _ node: NodeID, handle: FileHandle, offset: Int, whence: Int32, request: Request,
    reply: consuming SeekReply
  ) {
    reply.fail(.ENOSYS)
  }

  public func ioctl(
    _ node: NodeID, handle: FileHandle, command: UInt32, input: RawSpan, outputSize: Int, request: Request,
    reply: consuming ControlReply
  ) {
    reply.fail(.ENOTTY)
  }

  public func poll(
    _ node: NodeID, handle: FileHandle, events: UInt32, wakeup: PollWakeup?, request: Request,
    reply: consuming PollReply
  ) {
    // The kernel then answers that all files are always ready.
    reply.fail(.ENOSYS)
  }

  public func opendir(_ node: NodeID, flags: Int32, request: Request, reply: consuming OpenReply) {
    reply.succeed(FileHandle(rawValue: 0))
  }

  public func readdir(
    _ node: NodeID, handle: FileHandle, offset: Int, request: Request, reply: consuming DirectoryReply
  ) {
    reply.fail(.ENOTDIR)
  }

  public func readdirplus(
    _ node: NodeID, handle: FileHandle, offset: Int, request: Request, reply: consuming DirectoryPlusReply
  ) {
    // The kernel asks `readdir` from then on.
    reply.fail(.ENOSYS)
  }

  public func releasedir(_ node: NodeID, handle: FileHandle, request: Request, reply: consuming EmptyReply) {
    reply.succeed()
  }

  public func fsyncdir(
    _ node: NodeID, handle: FileHandle, scope: SyncScope, request: Request, reply: consuming EmptyReply
  ) {
    reply.succeed()
  }

  public func setxattr(
    _ node: NodeID, name: Span<UInt8>, value: RawSpan, flags: Int32, request: Request,
    reply: consuming EmptyReply
  ) {
    reply.fail(.EOPNOTSUPP)
  }

  public func getxattr(
    _ node: NodeID, name: Span<UInt8>, request: Request, reply: consuming ExtendedAttributeReply
  ) {
    reply.fail(.ENODATA)
  }

  public func listxattr(_ node: NodeID, request: Request, reply: consuming ExtendedAttributeReply) {
    reply.succeed(RawSpan())
  }

  public func removexattr(_ node: NodeID, name: Span<UInt8>, request: Request, reply: consuming EmptyReply) {
    reply.fail(.ENODATA)
  }
}
