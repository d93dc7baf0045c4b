/// A file system: one method for each operation of the kernel.
///
/// The methods are called on several threads at once and must not block: one that has to wait parks its reply and
/// returns. Names are bytes without a zero or a slash, and nothing else is sure: up to 4,000 of them, newlines, any
/// encoding. Names, spans and payloads are valid during the call only. All methods have a default, so that a small file
/// system implements few. In libfuse: `fuse_lowlevel_ops`. Locks are absent on purpose: so the kernel does them itself.
public protocol FileSystem: AnyObject, Sendable {
  // Names.
  /// LOOKUP: the node of a name, or ENOENT. A reply with an ``Entry`` counts as one lookup, until
  /// ``forget(_:lookups:)`` takes it back.
  func lookup(_ name: Span<UInt8>, in parent: NodeID, request: Request, reply: consuming EntryReply)
  /// The kernel drops as many of its lookups of a node; it has no answer. At unmount it may not come at all.
  func forget(_ node: NodeID, lookups: UInt64)
  /// MKNOD: makes a file without opening it. `mode` has type and permissions, `device` is that of a device node.
  func mknod(
    _ name: Span<UInt8>, in parent: NodeID, mode: UInt32, device: UInt64, request: Request,
    reply: consuming EntryReply)
  /// MKDIR: makes a directory. `mode` has the permissions, to which the kernel has applied the umask.
  func mkdir(
    _ name: Span<UInt8>, in parent: NodeID, mode: UInt32, request: Request, reply: consuming EntryReply)
  /// UNLINK: removes a name of anything but a directory; open handles keep the file.
  func unlink(_ name: Span<UInt8>, in parent: NodeID, request: Request, reply: consuming EmptyReply)
  /// RMDIR: removes an empty directory, or fails with ENOTEMPTY.
  func rmdir(_ name: Span<UInt8>, in parent: NodeID, request: Request, reply: consuming EmptyReply)
  /// SYMLINK: makes a symbolic link. `target` may be any bytes, up to PATH_MAX.
  func symlink(
    _ name: Span<UInt8>, in parent: NodeID, target: Span<UInt8>, request: Request, reply: consuming EntryReply
  )
  /// `flags`: RENAME_NOREPLACE, RENAME_EXCHANGE, RENAME_WHITEOUT of `renameat2(2)`.
  func rename(
    _ name: Span<UInt8>, in parent: NodeID, to newName: Span<UInt8>, in newParent: NodeID, flags: UInt32,
    request: Request, reply: consuming EmptyReply)
  /// LINK: gives a node a second name. EPERM for file systems without hard links.
  func link(
    _ node: NodeID, as newName: Span<UInt8>, in newParent: NodeID, request: Request,
    reply: consuming EntryReply)
  /// READLINK: the target of a symbolic link, without a NUL at its end.
  func readlink(_ node: NodeID, request: Request, reply: consuming DataReply)

  // Attributes.
  /// `handle` comes with few of the fstats: mostly the kernel leaves it out.
  func getattr(_ node: NodeID, handle: FileHandle?, request: Request, reply: consuming AttributesReply)
  /// SETATTR: chmod(2), chown(2), truncate(2), utimensat(2), and their forms for descriptors. Replies with all
  /// attributes as they are afterwards.
  func setattr(
    _ node: NodeID, to changes: AttributeChanges, handle: FileHandle?, request: Request,
    reply: consuming AttributesReply)
  /// `mask`: R_OK, W_OK, X_OK of `access(2)`; ENOSYS means yes, and the kernel asks no more.
  func access(_ node: NodeID, mask: Int32, request: Request, reply: consuming EmptyReply)
  /// STATFS: the room of the file system, for statfs(2) and df(1).
  func statfs(_ node: NodeID, request: Request, reply: consuming StatisticsReply)

  // Files.
  /// `flags` as in `open(2)`. O_TRUNC arrives here, and no `setattr` follows it. Never answer ENOSYS: it would mean
  /// success, for all opens to come.
  func open(_ node: NodeID, flags: Int32, request: Request, reply: consuming OpenReply)
  /// CREATE: makes a file and opens it in one step: open(2) with O_CREAT for a name that the kernel does not know.
  func create(
    _ name: Span<UInt8>, in parent: NodeID, mode: UInt32, flags: Int32, request: Request,
    reply: consuming CreateReply)
  /// READ: up to `size` bytes from `offset` on. A shorter reply is the end of the file, except with
  /// ``OpenOptions/directIO``, where read(2) returns as many.
  func read(
    _ node: NodeID, handle: FileHandle, offset: Int, size: Int, origin: ReadOrigin, request: Request,
    reply: consuming DataReply)
  /// The payload is zeroed in libfuse's buffer when the reply is answered, or else when this returns.
  func write(
    _ node: NodeID, handle: FileHandle, offset: Int, bytes: Span<UInt8>, origin: WriteOrigin,
    request: Request,
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
  /// FALLOCATE: fallocate(2) with its `mode`; EOPNOTSUPP for a mode that is not supported.
  func fallocate(
    _ node: NodeID, handle: FileHandle, mode: Int32, offset: Int, length: Int, request: Request,
    reply: consuming EmptyReply)
  /// Only SEEK_DATA and SEEK_HOLE; ENOSYS lets the kernel say that all is data.
  func lseek(
    _ node: NodeID, handle: FileHandle, offset: Int, whence: Int32, request: Request,
    reply: consuming SeekReply)
  /// IOCTL: `command` with the bytes at its argument; at most `outputSize` bytes are copied back.
  func ioctl(
    _ node: NodeID, handle: FileHandle, command: UInt32, input: Span<UInt8>, outputSize: Int,
    request: Request,
    reply: consuming ControlReply)
  /// `wakeup` is there if the caller wants to wait; it stays valid, and replaces the handle's earlier one.
  func poll(
    _ node: NodeID, handle: FileHandle, events: UInt32, wakeup: PollWakeup?, request: Request,
    reply: consuming PollReply)

  // Directories.
  /// OPENDIR: opens a directory for reading its entries.
  func opendir(_ node: NodeID, flags: Int32, request: Request, reply: consuming OpenReply)
  /// READDIR: entries from `offset` on, which is 0 or the `nextOffset` of an entry; an empty reply is the end.
  func readdir(
    _ node: NodeID, handle: FileHandle, offset: Int, request: Request, reply: consuming DirectoryReply)
  /// READDIRPLUS: as `readdir`, with an ``Entry`` for each name, which counts as a lookup except for `.` and `..`.
  func readdirplus(
    _ node: NodeID, handle: FileHandle, offset: Int, request: Request, reply: consuming DirectoryPlusReply)
  /// RELEASEDIR: the last descriptor of an open directory is closed. An error is not reported.
  func releasedir(_ node: NodeID, handle: FileHandle, request: Request, reply: consuming EmptyReply)
  /// FSYNCDIR: fsync(2) of an open directory.
  func fsyncdir(
    _ node: NodeID, handle: FileHandle, scope: SyncScope, request: Request, reply: consuming EmptyReply)

  // Extended attributes. ENOSYS would turn an operation off for the whole mount.
  /// `flags`: XATTR_CREATE and XATTR_REPLACE; the kernel passes both together too.
  func setxattr(
    _ node: NodeID, name: Span<UInt8>, value: Span<UInt8>, flags: Int32, request: Request,
    reply: consuming EmptyReply)
  /// `security.capability` is asked for before each write.
  func getxattr(
    _ node: NodeID, name: Span<UInt8>, request: Request, reply: consuming ExtendedAttributeReply)
  /// LISTXATTR: the names of all extended attributes, each ended by NUL.
  func listxattr(_ node: NodeID, request: Request, reply: consuming ExtendedAttributeReply)
  /// REMOVEXATTR: removes an extended attribute, or fails with ENODATA.
  func removexattr(_ node: NodeID, name: Span<UInt8>, request: Request, reply: consuming EmptyReply)
}
