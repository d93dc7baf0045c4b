public import Fuse
import Model
import Platform
import Store
import Tree

extension TreeFileSystem: FileSystem {
  /// LOOKUP: the node of a name, with its attributes; each reply counts until FORGET takes it back.
  public func lookup(
    _ name: Span<UInt8>, in parent: NodeID, request: Request, reply: consuming EntryReply
  ) {
    guard !isDetached else { return _ = reply.fail(.ENOTCONN) }
    if replay.includes(request), let current = replay.current(for: request) {
      return replay.lookup(name.array, in: parent, for: current, reply)
    }
    let (name, caller) = (name.array, request.caller)
    let look: @Sendable () throws(StoreError) -> Entry = { [self] () throws(StoreError) in
      try cache.entry(of: tree.child(of: node(parent), named: name), for: caller)
    }
    guard !mayBlock(lookingIn: parent) else {
      return performAsync(reply, of: .entry(name, in: parent), look) { [self] reply, entry in
        answer(reply, entry, caller)
      } onAbandoned: { [self] in
        forget($0.node, lookups: 1)
      }
    }
    do throws(StoreError) {
      let entry = try look()
      answer(reply, entry, caller)
    } catch {
      guard tree.asksForNames(in: parent.rawValue, name, by: caller) else {
        return fail(reply, error, .entry(name, in: parent))
      }
      unlock(reply, of: .entry(name, in: parent), after: error, by: caller) { [self] reply in
        // Its items may not all have been read yet.
        performAsync(reply, of: .entry(name, in: parent), look) { [self] reply, entry in
          answer(reply, entry, caller)
        } onAbandoned: { [self] in
          forget($0.node, lookups: 1)
        }
      }
    }
  }

  /// Answers a lookup, as GETATTR is answered: a size that would end reads of another value through the page cache waits for these, but for 10 ms at most.
  private func answer(_ reply: consuming EntryReply, _ entry: Entry, _ caller: Caller) {
    guard cache.endsReads(entry), let node = tree.node(entry.node.rawValue) else {
      return _ = reply.succeed(entry)
    }
    let parked = reply.park { _ in }
    cache.whenUnread(node) { [self] in
      guard let reply = parked.claim() else { return forget(entry.node, lookups: 1) }
      do throws(StoreError) {
        let entry = try cache.renewed(entry, of: node, for: caller)
        reply.succeed(entry)
      } catch {
        forget(entry.node, lookups: 1)
        fail(reply, error, .found(entry.node))
      }
    }
  }

  /// FORGET: takes lookups back; a node without lookups is dropped.
  public func forget(_ node: NodeID, lookups count: UInt64) {
    cache.forget(node, lookups: count)
  }

  /// MKNOD: makes a regular file; EPERM for devices, pipes and sockets.
  public func mknod(
    _ name: Span<UInt8>, in parent: NodeID, mode: UInt32, device: UInt64, request: Request,
    reply: consuming EntryReply
  ) {
    if let current = replay.current(for: request) { return replay.create(current, reply) }
    guard FileKind(rawValue: mode) == .file else {
      return fail(
        reply, .notPermitted(reason: "only regular files and directories stand here"),
        .entry(name.array, in: parent))
    }
    make(reply, request, in: parent, name.array) { tree, directory, name, caller throws(StoreError) in
      try tree.makeFile(name, in: directory, by: caller)
    }
  }

  /// MKDIR: makes a suite, a folder of a service or server, or an item's folder.
  public func mkdir(
    _ name: Span<UInt8>, in parent: NodeID, mode: UInt32, request: Request, reply: consuming EntryReply
  ) {
    if let current = replay.current(for: request) { return replay.create(current, reply) }
    make(reply, request, in: parent, name.array) { tree, directory, name, _ throws(StoreError) in
      try tree.makeDirectory(name, in: directory)
    }
  }

  /// SYMLINK: makes a symbolic link in memory, as editors use for locks.
  public func symlink(
    _ name: Span<UInt8>, in parent: NodeID, target: Span<UInt8>, request: Request,
    reply: consuming EntryReply
  ) {
    let target = target.array
    make(reply, request, in: parent, name.array) { tree, directory, name, _ throws(StoreError) in
      try tree.makeLink(name, to: target, in: directory)
    }
  }

  /// LINK: always EPERM, as link(2) names for a file system without hard links.
  public func link(
    _ node: NodeID, as newName: Span<UInt8>, in newParent: NodeID, request: Request,
    reply: consuming EntryReply
  ) {
    fail(reply, .notPermitted(reason: "a value has one name"), .entry(newName.array, in: newParent))
  }

  /// READLINK: the target of a symbolic link in memory.
  public func readlink(_ node: NodeID, request: Request, reply: consuming DataReply) {
    do throws(StoreError) {
      let target = try tree.linkTarget(of: self.node(node))
      reply.succeed(target.span)
    } catch {
      fail(reply, error, .node(node))
    }
  }

  /// UNLINK: removes a key, an item's secret or a scratch file; open handles keep the content.
  public func unlink(
    _ name: Span<UInt8>, in parent: NodeID, request: Request, reply: consuming EmptyReply
  ) {
    if let current = replay.current(for: request) { return replay.remove(current, reply) }
    let name = name.array
    performAsync(reply, of: .entry(name, in: parent)) { [self] () throws(StoreError) in
      try tree.remove(name, in: node(parent))
    }
  }

  /// RMDIR: removes an empty suite, a folder, or an item; ENOTEMPTY for what has contents.
  public func rmdir(
    _ name: Span<UInt8>, in parent: NodeID, request: Request, reply: consuming EmptyReply
  ) {
    if let current = replay.current(for: request) { return replay.remove(current, reply) }
    let name = name.array
    performAsync(reply, of: .entry(name, in: parent)) { [self] () throws(StoreError) in
      try tree.removeDirectory(name, in: node(parent))
    }
  }

  /// RENAME2: renames, replaces or, with RENAME_NOREPLACE, only renames; EINVAL for RENAME_EXCHANGE.
  public func rename(
    _ name: Span<UInt8>, in parent: NodeID, to newName: Span<UInt8>, in newParent: NodeID, flags: UInt32,
    request: Request, reply: consuming EmptyReply
  ) {
    let (name, newName, caller) = (name.array, newName.array, request.caller)
    let subject = Subject(node: parent, entry: EntryName(newName, in: newParent))
    // Of linux/fs.h only RENAME_NOREPLACE, 1.
    guard flags & ~1 == 0 else {
      refusals.note(
        path: path(of: subject), reason: "two values can't change places in one step; use a third name")
      return _ = reply.fail(.EINVAL)
    }
    withAccess(reply, of: subject, by: caller) { [self] () throws(StoreError) in
      try tree.permission(toRename: name, in: node(parent), to: newName, by: caller)
    } _: { [self] reply, permit in
      performAsync(reply, of: subject) { [self] () throws(StoreError) in
        try tree.rename(
          name, in: node(parent), to: newName, in: node(newParent), replacing: flags == 0, by: caller, permit)
      }
    }
  }

  private func make(
    _ reply: consuming EntryReply, _ request: Request, in parent: NodeID, _ name: [UInt8],
    _ make: @escaping @Sendable (FileTree, Node, [UInt8], Caller) throws(StoreError) -> Node
  ) {
    let caller = request.caller
    let work: @Sendable () throws(StoreError) -> Entry = { [self] () throws(StoreError) in
      try cache.newEntry(of: make(tree, node(parent), name, caller), for: caller)
    }
    performAsync(reply, of: .entry(name, in: parent), work) { reply, entry in
      reply.succeed(entry)
    } onAbandoned: { [self] in
      forget($0.node, lookups: 1)
    }
  }
}
