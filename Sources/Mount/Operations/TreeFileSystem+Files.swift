public import Fuse
import Model
import Notifier
import Platform
import Store
import Tree

extension TreeFileSystem {
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
    if origin.isForPageCache { cache.noteMapping(of: file) }
    guard tree.mayBlock(using: reader.node), reader.asksStore(readingAt: offset) else {
      do throws(StoreError) { try reader.readOn(from: offset) } catch {
        return fail(reply, error, .node(node))
      }
      return answer(reply, reader, offset, size, node)
    }
    performAsync(reply, of: .node(node)) { () throws(StoreError) in
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
      try reader.readLoaded(at: offset, count: size) { bytes in
        guard let reply = owed.take() else { return }
        if reader.node.isSecret {
          reply.succeed(secret: bytes)
        } else {
          reply.succeed(bytes)
        }
      }
    } catch {
      if let reply = owed.take() { fail(reply, error, .node(node)) }
    }
  }

  /// WRITE: into the handle's draft, in memory; EINVAL as soon as the draft can't become a value of the key's type.
  public func write(
    _ node: NodeID, handle: FileHandle, offset: Int, bytes: Span<UInt8>, origin: WriteOrigin,
    request: Request, reply: consuming WriteReply
  ) {
    let isAppended = CallFlags.isAppending(origin.flags) && !origin.isFromPageCache
    let file = OpenFiles.file(handle)
    do throws(StoreError) {
      try file.handle.write(bytes, at: isAppended ? nil : offset, by: request.caller)
      reply.succeed(written: bytes.count)
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
    performAsync(reply, of: .node(node)) { () throws(StoreError) in try file.handle.flush(by: caller) }
  }

  /// FSYNC: commits the draft, and returns when the value is on the disk.
  public func fsync(
    _ node: NodeID, handle: FileHandle, scope: SyncScope, request: Request, reply: consuming EmptyReply
  ) {
    let file = OpenFiles.file(handle)
    performAsync(reply, of: .node(node)) { () throws(StoreError) in try file.handle.synchronize() }
  }

  /// RELEASE: closes the handle, and commits a draft that no FLUSH has seen, as of a mapping.
  public func release(
    _ node: NodeID, handle: FileHandle, origin: ReleaseOrigin, request: Request,
    reply: consuming EmptyReply
  ) {
    guard handle != .replay else { return _ = reply.succeed() }
    let file = OpenFiles.closeFile(handle)
    // Nothing is to be stored where FLUSH has done that.
    guard file.handle.isDirty else {
      end(file)
      return _ = reply.succeed()
    }
    performAsync(reply, of: .node(node)) { [self] in end(file) }
  }

  /// FALLOCATE: extends the draft with zeros; EOPNOTSUPP for every mode but 0.
  public func fallocate(
    _ node: NodeID, handle: FileHandle, mode: Int32, offset: Int, length: Int, request: Request,
    reply: consuming EmptyReply
  ) {
    guard handle != .replay else { return _ = reply.succeed() }
    guard mode == 0 else { return _ = reply.fail(.EOPNOTSUPP) }
    let (end, overflows) = offset.addingReportingOverflow(length)
    guard !overflows else { return _ = reply.fail(.EFBIG) }
    let (file, caller) = (OpenFiles.file(handle), request.caller)
    performAsync(reply, of: .node(node)) { () throws(StoreError) in
      try file.handle.extend(to: end, by: caller)
    }
  }

  /// Closes the handle: commits what no FLUSH has seen.
  func close(_ file: OpenFile) {
    let node = file.handle.node
    defer { unregister() }
    guard file.handle.close(), let name = tree.staleName(of: node) else { return }
    cache.invalidate([name])
  }

  private func end(_ file: OpenFile) {
    cache.close(file)
    close(file)
  }
}
