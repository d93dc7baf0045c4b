public import Fuse
import Model
import Platform
import Store
import Synchronization
import Tree

extension TreeFileSystem {
  /// OPEN: makes a handle. An item with flags or rules may ask the user first; the reply is parked meanwhile.
  public func open(_ node: NodeID, flags: Int32, request: Request, reply: consuming OpenReply) {
    guard !isDetached else { return _ = reply.fail(.ENOTCONN) }
    guard !replay.includes(request) else { return replay.open(reply) }
    let (mode, caller) = (OpenMode(flags: flags), request.caller)
    guard let found = tree.node(node.rawValue) else { return _ = reply.fail(.ESTALE) }
    withAccess(reply, of: .node(node), flags: flags, by: caller) { [tree] () throws(StoreError) in
      try tree.permission(toOpen: found, mode, by: caller)
    } _: { [self] reply, permit in
      open(found, mode, caller, permit, reply)
    }
  }

  private func open(
    _ node: Node, _ mode: OpenMode, _ caller: Caller, _ permit: Permit?, _ reply: consuming OpenReply
  ) {
    let subject = Subject.found(NodeID(rawValue: node.number))
    guard !tree.mayWait(using: node) else {
      return performAsync(reply, of: subject) { [self] () throws(StoreError) in
        try tree.open(node, mode, by: caller, permit)
      } answer: { [self] reply, handle in
        answer(reply, handle)
      } onAbandoned: { handle in
        handle.abandon()
      }
    }
    do throws(StoreError) {
      answer(reply, try tree.open(node, mode, by: caller, permit))
    } catch {
      fail(reply, error, subject)
    }
  }

  private func answer(_ reply: consuming OpenReply, _ handle: Handle) {
    let (file, options, dropsAttributes) = cache.open(handle)
    // A read through the kernel's cache that is under way would end at the size of another value: where the attributes are
    // dropped as the read asks for them, and after an O_TRUNC, with which the kernel takes the file for empty.
    let endsReads = dropsAttributes || handle.mode.contains(.truncate)
    guard endsReads, !file.isCached, cache.isRead(handle.node) else {
      if dropsAttributes { cache.dropAttributes(of: handle.node) }
      return deliver(reply, file, options)
    }
    let parked = reply.park { _ in }
    cache.whenUnread(handle.node) { [self] in
      if dropsAttributes { cache.dropAttributes(of: handle.node) }
      if let reply = parked.claim() { deliver(reply, file, options) }
    }
  }

  private func deliver(_ reply: consuming OpenReply, _ file: OpenFile, _ options: OpenOptions) {
    let number = register(file)
    if !reply.succeed(number, options: options) { drop(number) }
  }

  /// CREATE: makes a file and a handle for writing it; a key exists when it is first committed.
  public func create(
    _ name: Span<UInt8>, in parent: NodeID, mode: UInt32, flags: Int32, request: Request,
    reply: consuming CreateReply
  ) {
    guard !isDetached else { return _ = reply.fail(.ENOTCONN) }
    let (name, caller) = (name.array, request.caller)
    withAccess(reply, of: .entry(name, in: parent), flags: flags, by: caller) {
      [self] () throws(StoreError) in
      try tree.permission(toCreate: name, in: node(parent), OpenMode(flags: flags), by: caller)
    } _: { [self] reply, permit in
      create(name, in: parent, flags, caller, permit, reply)
    }
  }

  private func create(
    _ name: [UInt8], in parent: NodeID, _ flags: Int32, _ caller: Caller, _ permit: Permit?,
    _ reply: consuming CreateReply
  ) {
    let (mode, isExclusive) = (OpenMode(flags: flags), CallFlags.isExclusive(flags))
    let make: @Sendable () throws(StoreError) -> Handle = { [self] () throws(StoreError) in
      try tree.create(name, in: node(parent), mode, exclusive: isExclusive, by: caller, permit)
    }
    guard !mayWait(using: parent) else {
      return performAsync(reply, of: .entry(name, in: parent), make) { [self] reply, handle in
        answer(reply, handle, caller, parent)
      } onAbandoned: { handle in
        handle.abandon()
      }
    }
    do throws(StoreError) {
      answer(reply, try make(), caller, parent)
    } catch {
      fail(reply, error, .entry(name, in: parent))
    }
  }

  private func answer(
    _ reply: consuming CreateReply, _ handle: Handle, _ caller: Caller, _ parent: NodeID
  ) {
    do throws(StoreError) {
      let entry = try cache.newEntry(of: handle.node, for: caller)
      let (file, options, dropsAttributes) = cache.open(handle)
      if dropsAttributes { cache.dropAttributes(of: handle.node) }
      let number = register(file)
      if !reply.succeed(entry, handle: number, options: options) {
        drop(number)
        forget(entry.node, lookups: 1)
      }
    } catch {
      handle.abandon()
      fail(reply, error, .node(parent))
    }
  }

  /// The caller, or the mount, was gone before the kernel got the handle: no RELEASE follows, and an O_TRUNC is not
  /// committed.
  private func drop(_ number: FileHandle) {
    let file = OpenFiles.closeFile(number)
    cache.withdraw(file)
    file.handle.abandon()
    unregister()
  }
}
