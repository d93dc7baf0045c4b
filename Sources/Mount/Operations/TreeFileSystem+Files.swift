import Dispatch
public import Fuse
import Glibc
import Model
import Platform
import Store
import Synchronization
import Tree

extension TreeFileSystem {
  /// OPEN: makes a handle. An item with flags or rules may ask the user first; the reply is parked meanwhile.
  public func open(_ node: NodeID, flags: Int32, request: Request, reply: consuming OpenReply) {
    guard !isDetached else { return _ = reply.fail(.ENOTCONN) }
    guard replay(behind: request) == nil else {
      // The next reader drops the cached value if it is another one.
      return _ = reply.succeed(.replay, options: [.directIO, .keepCache, .noFlush])
    }
    let (mode, caller) = (OpenMode(flags: flags), request.caller)
    guard let found = tree.node(node.rawValue) else { return refuseNode(reply, .notFound, node) }
    permitted(reply, of: node, flags: flags) { () throws(StoreError) in
      try tree.permission(toOpen: found, mode, by: caller)
    } _: { [self] reply, permit in
      open(node, mode, caller, permit, reply)
    }
  }

  private func open(
    _ node: NodeID, _ mode: OpenMode, _ caller: Caller, _ permit: Permit?, _ reply: consuming OpenReply
  ) {
    let open: @Sendable () throws(StoreError) -> Handle = { [self] () throws(StoreError) in
      try tree.open(self.node(node), mode, by: caller, permit)
    }
    guard !mayWait(using: node) else {
      return performAsync(reply, of: node, staleOnNotFound: true, open) { [self] reply, handle in
        answer(reply, handle)
      } onAbandoned: { handle in
        handle.abandon()
      }
    }
    do throws(StoreError) {
      answer(reply, try open())
    } catch {
      refuseNode(reply, error, node)
    }
  }

  private func mayWait(using node: NodeID) -> Bool {
    tree.node(node.rawValue).map(tree.mayWait(using:)) ?? false
  }

  private func answer(_ reply: consuming OpenReply, _ handle: Handle) {
    let (file, options) = begin(handle)
    requireAttributes(of: handle)
    let isRead = handle.mode.contains(.truncate) && pages.withLock { $0.isRead(handle.node.number) }
    isRead ? deliverWhenUnread(reply, file, options) : deliver(reply, file, options)
  }

  private func deliver(_ reply: consuming OpenReply, _ file: OpenFile, _ options: OpenOptions) {
    let number = register(file)
    // Not delivered: then no release follows.
    if !reply.succeed(number, options: options) { drop(OpenFiles.closeFile(number)) }
  }

  /// With the answer to an O_TRUNC the kernel takes the file for empty until it asks again, and a read through its cache
  /// that is under way then ends there. So the answer waits for such readers, but not without limit, as `tail -f` may read on.
  private func deliverWhenUnread(
    _ reply: consuming OpenReply, _ file: OpenFile, _ options: OpenOptions
  ) {
    let parked = reply.park { _ in }
    let answer: @Sendable () -> Void = { [self] in
      if let reply = parked.claim() { deliver(reply, file, options) }
    }
    guard pages.withLock({ $0.wait(for: file.handle.node.number, answer) }) else { return answer() }
    Background.run(after: Self.patienceWithReaders, answer)
  }

  static let patienceWithReaders = DispatchTimeInterval.milliseconds(10)

  /// CREATE: makes a file and a handle for writing it; a key exists when it is first committed.
  public func create(
    _ name: Span<UInt8>, in parent: NodeID, mode: UInt32, flags: Int32, request: Request,
    reply: consuming CreateReply
  ) {
    guard !isDetached else { return _ = reply.fail(.ENOTCONN) }
    let (name, caller) = (name.array, request.caller)
    permitted(reply, of: parent, about: EntryName(name, in: parent), flags: flags) { () throws(StoreError) in
      try tree.permission(toCreate: name, in: node(parent), OpenMode(flags: flags), by: caller)
    } _: { [self] reply, permit in
      create(name, in: parent, flags, caller, permit, reply)
    }
  }

  private func create(
    _ name: [UInt8], in parent: NodeID, _ flags: Int32, _ caller: Caller, _ permit: Permit?,
    _ reply: consuming CreateReply
  ) {
    let (mode, isExclusive) = (OpenMode(flags: flags), flags & O_EXCL != 0)
    let make: @Sendable () throws(StoreError) -> Handle = { [self] () throws(StoreError) in
      try tree.create(name, in: node(parent), mode, exclusive: isExclusive, by: caller, permit)
    }
    guard !mayWait(using: parent) else {
      return performAsync(reply, of: parent, about: EntryName(name, in: parent), make) {
        [self] reply, handle in
        answer(reply, handle, caller, parent)
      } onAbandoned: { handle in
        handle.abandon()
      }
    }
    do throws(StoreError) {
      answer(reply, try make(), caller, parent)
    } catch {
      refuse(reply, error, parent, about: EntryName(name, in: parent))
    }
  }

  private func answer(
    _ reply: consuming CreateReply, _ handle: Handle, _ caller: Caller, _ parent: NodeID
  ) {
    do throws(StoreError) {
      let entry = try entry(of: handle.node, for: caller)
      let (file, options) = begin(handle)
      requireAttributes(of: handle)
      let number = register(file)
      if !reply.succeed(entry, handle: number, options: options) { drop(OpenFiles.closeFile(number)) }
    } catch {
      handle.abandon()
      refuse(reply, error, parent)
    }
  }

  /// READ: from the handle's snapshot or draft. A secret's bytes are copied into the reply and wiped.
  public func read(
    _ node: NodeID, handle: FileHandle, offset: Int, size: Int, origin: ReadOrigin, request: Request,
    reply: consuming DataReply
  ) {
    let file = OpenFiles.file(handle)
    if let events = file.handle.events {
      return origin.isForPageCache
        ? readPage(of: events.log, at: offset, size: size, reply: reply)
        : readEvents(events, at: offset, size: size, reply: reply)
    }
    let reader = file.handle
    if origin.isForPageCache, reader.node.isSecret { file.noteCachedPages() }
    guard tree.mayBlock(using: reader.node), reader.asksStore(readingAt: offset) else {
      do throws(StoreError) { try reader.readOn(from: offset) } catch { return refuse(reply, error, node) }
      return answer(reply, reader, offset, size, node)
    }
    performAsync(reply, of: node) { () throws(StoreError) in
      try reader.readOn(from: offset)
    } answer: { [self] reply, _ in
      answer(reply, reader, offset, size, node)
    }
  }

  private func answer(
    _ reply: consuming DataReply, _ reader: Handle, _ offset: Int, _ size: Int, _ node: NodeID
  ) {
    var owed: DataReply? = consume reply
    do throws(StoreError) {
      try unsafe reader.readLoaded(at: offset, count: size) { bytes in
        guard let reply = owed.take() else { return }
        if reader.node.isSecret {
          unsafe reply.succeed(secret: bytes.bytes)
        } else {
          unsafe reply.succeed(bytes.bytes)
        }
      }
    } catch {
      if let reply = owed.take() { refuse(reply, error, node) }
    }
  }

  /// WRITE: into the handle's draft, in memory; EINVAL as soon as the draft can't become a value of the key's type.
  public func write(
    _ node: NodeID, handle: FileHandle, offset: Int, bytes: RawSpan, origin: WriteOrigin,
    request: Request, reply: consuming WriteReply
  ) {
    let isAppended = origin.flags & O_APPEND != 0 && !origin.isFromPageCache
    let file = OpenFiles.file(handle)
    do throws(StoreError) {
      try unsafe bytes.withUnsafeBytes { (bytes) throws(StoreError) in
        try unsafe file.handle.write(bytes, at: isAppended ? nil : offset, by: request.caller)
      }
      reply.succeed(written: bytes.byteCount)
    } catch {
      refusals.note(path: file.handle.node.path, error)
      reply.fail(Errno(error))
    }
  }

  /// FLUSH, at each close(2): commits the draft on a queue, with the reply parked. Fails with the errno of the commit.
  public func flush(
    _ node: NodeID, handle: FileHandle, lockOwner: UInt64, request: Request, reply: consuming EmptyReply
  ) {
    let file = OpenFiles.file(handle)
    guard file.handle.isDirty else { return _ = reply.succeed() }
    let caller = request.caller
    performAsync(reply, of: node) { () throws(StoreError) in try file.handle.flush(by: caller) }
  }

  /// FSYNC: commits the draft, and returns when the value is on the disk.
  public func fsync(
    _ node: NodeID, handle: FileHandle, scope: SyncScope, request: Request, reply: consuming EmptyReply
  ) {
    let file = OpenFiles.file(handle)
    performAsync(reply, of: node) { () throws(StoreError) in try file.handle.synchronize() }
  }

  /// RELEASE: closes the handle, and commits a draft that no FLUSH has seen, as of a mapping.
  public func release(
    _ node: NodeID, handle: FileHandle, origin: ReleaseOrigin, request: Request,
    reply: consuming EmptyReply
  ) {
    guard handle != .replay else { return _ = reply.succeed() }
    let file = OpenFiles.closeFile(handle)
    guard file.handle.mode.contains(.write) else {
      end(file)
      return _ = reply.succeed()
    }
    performAsync(reply, of: node) { [self] in end(file) }
  }

  /// FALLOCATE: extends the draft with zeros; EOPNOTSUPP for every mode but 0.
  public func fallocate(
    _ node: NodeID, handle: FileHandle, mode: Int32, offset: Int, length: Int, request: Request,
    reply: consuming EmptyReply
  ) {
    guard mode == 0 else { return _ = reply.fail(.EOPNOTSUPP) }
    let (end, overflows) = offset.addingReportingOverflow(length)
    guard !overflows else { return _ = reply.fail(.EFBIG) }
    let (file, caller) = (OpenFiles.file(handle), request.caller)
    performAsync(reply, of: node) { () throws(StoreError) in try file.handle.extend(to: end, by: caller) }
  }

  /// How the kernel shall treat a new handle.
  private func begin(_ handle: Handle) -> (OpenFile, OpenOptions) {
    let isWriter = handle.mode.contains(.write)
    // A reader that writes nothing needs no flush at its close, which would be another round trip.
    let options: OpenOptions = isWriter ? [] : .noFlush
    let use = isWriter ? .direct : cacheUse(of: handle)
    guard use != .direct else { return (OpenFile(handle, isCached: false), options.union(.directIO)) }
    let file = OpenFile(handle, isCached: true)
    cachedReaders.withLock { $0[handle.node.number, default: []].append(file) }
    return (file, use == .kept ? options.union(.keepCache) : options)
  }

  /// Drops what the kernel knows of the file, if that is of another value than the handle's. After `begin`, so that a
  /// status that is asked for later is short-lived where the handle is outdated.
  private func requireAttributes(of handle: Handle) {
    let (node, version) = (handle.node, handle.version)
    guard version != 0 else { return }
    let isStale = cachedAttributes.withLock { $0.invalidates(node.number, serving: version) }
    if isStale { invalidateAttributes(of: node) }
  }

  private func cacheUse(of reader: Handle) -> PageCache.Use {
    let node = reader.node
    guard reader.version != 0 else { return .direct }
    let use = pages.withLock { $0.open(node.number, version: reader.version) }
    // Looked at last, as a writer looks for readers after it has made itself known: one of them sees the other.
    guard node.isBeingWritten, use != .direct else { return use }
    pages.withLock { $0.withdraw(node.number) }.forEach { $0() }
    return .direct
  }

  private func end(_ file: OpenFile) {
    if file.isCached { leaveCache(file) { $0.close($1) } }
    close(file)
  }

  private func leaveCache(
    _ file: OpenFile, _ leave: (inout PageCache, UInt64) -> [@Sendable () -> Void]
  ) {
    let number = file.handle.node.number
    cachedReaders.withLock { readers in
      readers[number]?.removeAll { $0 === file }
      if readers[number]?.isEmpty == true { readers[number] = nil }
    }
    pages.withLock { leave(&$0, number) }.forEach { $0() }
  }

  /// The caller was gone before it got the handle.
  private func drop(_ file: OpenFile) {
    if file.isCached { leaveCache(file) { $0.withdraw($1) } }
    close(file)
  }

  private func close(_ file: OpenFile) {
    let node = file.handle.node
    if file.isMapped { dropPages(of: [node]) }
    defer { unregister() }
    guard file.handle.close(), let name = tree.staleName(of: node) else { return }
    tellKernel { $0.forget(name) }
  }
}
