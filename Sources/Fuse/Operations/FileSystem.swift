/// What answers the kernel: one method for each of its operations.
///
/// The methods are called on several threads at once and must not block: one that has to wait parks its reply and
/// returns. Names are bytes without a zero or a slash, and nothing else is sure: up to 4,000 of them, newlines, any
/// encoding. Names, spans and payloads are valid during the call only. All methods have a default, so that a small file
/// system implements few. In libfuse: `fuse_lowlevel_ops`. Locks are absent on purpose: so the kernel does them itself.
public protocol FileSystem: AnyObject, Sendable {
  // Names.
  func lookup(_ name: Span<UInt8>, in parent: NodeID, request: Request, reply: consuming EntryReply)
  /// The kernel drops as many of its lookups of a node; it has no answer. At unmount it may not come at all.
  func forget(_ node: NodeID, lookups: UInt64)
  func mknod(
    _ name: Span<UInt8>, in parent: NodeID, mode: UInt32, device: UInt64, request: Request,
    reply: consuming EntryReply)
  func mkdir(
    _ name: Span<UInt8>, in parent: NodeID, mode: UInt32, request: Request, reply: consuming EntryReply)
  func unlink(_ name: Span<UInt8>, in parent: NodeID, request: Request, reply: consuming EmptyReply)
  func rmdir(_ name: Span<UInt8>, in parent: NodeID, request: Request, reply: consuming EmptyReply)
  func symlink(
    _ name: Span<UInt8>, in parent: NodeID, target: Span<UInt8>, request: Request, reply: consuming EntryReply
  )
  /// `flags`: RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT of `renameat2(2)`.
  func rename(
    _ name: Span<UInt8>, in parent: NodeID, to newName: Span<UInt8>, in newParent: NodeID, flags: UInt32,
    request: Request, reply: consuming EmptyReply)
  func link(
    _ node: NodeID, as newName: Span<UInt8>, in newParent: NodeID, request: Request,
    reply: consuming EntryReply)
  func readlink(_ node: NodeID, request: Request, reply: consuming DataReply)

  // Attributes.
  /// `handle` comes with few of the fstats: mostly the kernel leaves it out.
  func getattr(_ node: NodeID, handle: FileHandle?, request: Request, reply: consuming AttributesReply)
  func setattr(
    _ node: NodeID, to changes: AttributeChanges, handle: FileHandle?, request: Request,
    reply: consuming AttributesReply)
  /// `mask`: R_OK, W_OK, X_OK of `access(2)`; ENOSYS means yes, and the kernel asks no more.
  func access(_ node: NodeID, mask: Int32, request: Request, reply: consuming EmptyReply)
  func statfs(_ node: NodeID, request: Request, reply: consuming StatisticsReply)

  // Files.
  /// `flags` as in `open(2)`. O_TRUNC arrives here, and no `setattr` follows it. Never answer ENOSYS: it would mean
  /// success, for all opens to come.
  func open(_ node: NodeID, flags: Int32, request: Request, reply: consuming OpenReply)
  func create(
    _ name: Span<UInt8>, in parent: NodeID, mode: UInt32, flags: Int32, request: Request,
    reply: consuming CreateReply)
  func read(
    _ node: NodeID, handle: FileHandle, offset: Int, size: Int, origin: ReadOrigin, request: Request,
    reply: consuming DataReply)
  /// The payload is zeroed in libfuse's buffer when the reply is answered, or else when this returns.
  func write(
    _ node: NodeID, handle: FileHandle, offset: Int, bytes: RawSpan, origin: WriteOrigin, request: Request,
    reply: consuming WriteReply)
  /// One of the descriptors of a handle is closed; it may come often, and before anything was written.
  func flush(
    _ node: NodeID, handle: FileHandle, lockOwner: UInt64, request: Request, reply: consuming EmptyReply)
  /// The last descriptor and mapping of a handle is gone. An error is not reported.
  func release(
    _ node: NodeID, handle: FileHandle, origin: ReleaseOrigin, request: Request, reply: consuming EmptyReply)
  /// Never answer ENOSYS: programs like vim take it for a failed save.
  func fsync(
    _ node: NodeID, handle: FileHandle, scope: SyncScope, request: Request, reply: consuming EmptyReply)
  func fallocate(
    _ node: NodeID, handle: FileHandle, mode: Int32, offset: Int, length: Int, request: Request,
    reply: consuming EmptyReply)
  /// Only SEEK_DATA and SEEK_HOLE; ENOSYS lets the kernel say that all is data.
  func lseek(
    _ node: NodeID, handle: FileHandle, offset: Int, whence: Int32, request: Request,
    reply: consuming SeekReply)
  func ioctl(
    _ node: NodeID, handle: FileHandle, command: UInt32, input: RawSpan, outputSize: Int, request: Request,
    reply: consuming ControlReply)
  /// `wakeup` is there if the caller wants to wait; it stays valid, and replaces the handle's earlier one.
  func poll(
    _ node: NodeID, handle: FileHandle, events: UInt32, wakeup: PollWakeup?, request: Request,
    reply: consuming PollReply)

  // Directories.
  func opendir(_ node: NodeID, flags: Int32, request: Request, reply: consuming OpenReply)
  func readdir(
    _ node: NodeID, handle: FileHandle, offset: Int, request: Request, reply: consuming DirectoryReply)
  func readdirplus(
    _ node: NodeID, handle: FileHandle, offset: Int, request: Request, reply: consuming DirectoryPlusReply)
  func releasedir(_ node: NodeID, handle: FileHandle, request: Request, reply: consuming EmptyReply)
  func fsyncdir(
    _ node: NodeID, handle: FileHandle, scope: SyncScope, request: Request, reply: consuming EmptyReply)

  // Extended attributes. ENOSYS would turn an operation off for the whole mount.
  /// `flags`: XATTR_CREATE and XATTR_REPLACE; the kernel passes both together too.
  func setxattr(
    _ node: NodeID, name: Span<UInt8>, value: RawSpan, flags: Int32, request: Request,
    reply: consuming EmptyReply)
  /// `security.capability` is asked for before each write.
  func getxattr(
    _ node: NodeID, name: Span<UInt8>, request: Request, reply: consuming ExtendedAttributeReply)
  func listxattr(_ node: NodeID, request: Request, reply: consuming ExtendedAttributeReply)
  func removexattr(_ node: NodeID, name: Span<UInt8>, request: Request, reply: consuming EmptyReply)
}
