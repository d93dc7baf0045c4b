public import Fuse
import Model
import Platform
import Store
import Tree

extension TreeFileSystem {
  /// GETATTR: the size of an open handle's content, or the attributes of the stored value.
  public func getattr(
    _ node: NodeID, handle: FileHandle?, request: Request, reply: consuming AttributesReply
  ) {
    let (caller, file) = (request.caller, handle.map(OpenFiles.file))
    do throws(StoreError) {
      let node = try self.node(node)
      cache.readOn(node)
      let present = try attributes(of: node, file, caller)
      answer(reply, of: node, present) { [self] () throws(StoreError) in
        try attributes(of: node, file, caller)
      }
    } catch {
      fail(reply, error, .found(node))
    }
  }

  private func attributes(
    of node: Node, _ file: OpenFile?, _ caller: Caller
  ) throws(StoreError) -> (Attributes, timeout: Double) {
    let (attributes, timeout) = try cache.attributes(of: node, for: caller)
    // The kernel asks for the sake of a read: that ends where the reader's own value ends.
    guard let size = file.flatMap({ snapshotSize($0, of: node) }), size != attributes.size else {
      return (attributes, timeout)
    }
    var ofReader = attributes
    ofReader.size = size
    return (ofReader, 0)
  }

  /// Answers with attributes of a file. Where their size would end reads of another value through the page cache, it waits for these, but for 10 ms at most,
  /// and then answers with those that `renewed` returns.
  private func answer(
    _ reply: consuming AttributesReply, of node: Node, _ present: (attributes: Attributes, timeout: Double),
    _ renewed: @escaping @Sendable () throws(StoreError) -> (Attributes, timeout: Double)
  ) {
    guard present.timeout == 0, cache.endsReads(of: node, at: present.attributes.size) else {
      return _ = reply.succeed(present.attributes, timeout: present.timeout)
    }
    let parked = reply.park { _ in }
    cache.whenUnread(node) { [self] in
      guard let reply = parked.claim() else { return }
      do throws(StoreError) {
        let (attributes, timeout) = try renewed()
        reply.succeed(attributes, timeout: timeout)
      } catch {
        fail(reply, error, .found(NodeID(rawValue: node.number)))
      }
    }
  }

  private func snapshotSize(_ file: OpenFile, of node: Node) -> Int? {
    guard !node.isDirectory, file.handle.hasSnapshot else { return nil }
    return file.handle.snapshotSize
  }

  /// SETATTR: truncate(2), chmod(2), utimensat(2). EPERM for another owner or group than the user's.
  public func setattr(
    _ node: NodeID, to changes: AttributeChanges, handle: FileHandle?, request: Request,
    reply: consuming AttributesReply
  ) {
    guard changes.userID ?? cache.userID == cache.userID, changes.groupID ?? cache.groupID == cache.groupID
    else {
      return fail(reply, .notPermitted(reason: "all files belong to the mounting user"), .node(node))
    }
    let caller = request.caller
    guard !replay.includes(request) else {
      return change(node, AttributeChanges(), nil, caller, nil, reply)
    }
    let file = handle.map(OpenFiles.file)
    guard changes.size != nil, file == nil, let found = tree.node(node.rawValue) else {
      return change(node, changes, file, caller, nil, reply)
    }
    withAccess(reply, of: .node(node), by: caller) { [tree] () throws(StoreError) in
      try tree.permission(toOpen: found, .write, by: caller)
    } _: { [self] reply, permit in
      change(node, changes, file, caller, permit, reply)
    }
  }

  private func change(
    _ node: NodeID, _ changes: AttributeChanges, _ file: OpenFile?, _ caller: Caller, _ permit: Permit?,
    _ reply: consuming AttributesReply
  ) {
    let work: @Sendable () throws(StoreError) -> (node: Node, Attributes) = { [self] () throws(StoreError) in
      let node = try self.node(node)
      if let size = changes.size { try resize(node, file, to: size, by: caller, permit) }
      try tree.setTimes(
        accessed: changes.accessTime?.time, modified: changes.modificationTime?.time, of: node)
      return (node, try cache.attributes(of: node, for: caller).0)
    }
    performAsync(reply, of: .node(node), work) { [self] reply, result in
      // For this moment only: the kernel can't apply an invalidation to this answer while it is under way, as it
      // does to others, and a size that is too small would cut off the next reader.
      answer(reply, of: result.node, (result.1, 0)) { [self] () throws(StoreError) in
        (try cache.attributes(of: result.node, for: caller).0, 0)
      }
    }
  }

  private func resize(
    _ node: Node, _ file: OpenFile?, to size: Int, by caller: Caller, _ permit: Permit?
  ) throws(StoreError) {
    guard let file else { return try tree.truncate(node, to: size, by: caller, permit) }
    try file.handle.truncate(to: size, by: caller)
  }

  /// ACCESS: EACCES for execution of a file, and for writing the reason why the store can't be changed now.
  public func access(_ node: NodeID, mask: Int32, request: Request, reply: consuming EmptyReply) {
    do throws(StoreError) {
      let node = try self.node(node)
      guard !CallFlags.asksExecution(mask) || node.isDirectory else { return _ = reply.fail(.EACCES) }
      if CallFlags.asksWriting(mask) { try tree.checkWritable(node) }
      reply.succeed()
    } catch {
      fail(reply, error, .node(node))
    }
  }

  /// STATFS: the room of the disk that holds the suites, and the longest name of the directory.
  public func statfs(_ node: NodeID, request: Request, reply: consuming StatisticsReply) {
    do throws(StoreError) {
      var statistics = Statistics(try tree.room())
      statistics.maximumNameLength = UInt(tree.longestName(in: try self.node(node)))
      reply.succeed(statistics)
    } catch {
      fail(reply, error, .node(node))
    }
  }

  /// GETXATTR: EOPNOTSUPP for names outside `user.`, without a look at a store.
  public func getxattr(
    _ node: NodeID, name: Span<UInt8>, request: Request, reply: consuming ExtendedAttributeReply
  ) {
    // `security.capability` comes before each write, and tools probe for ACLs all the time.
    guard name.isUserAttribute else { return _ = reply.fail(.EOPNOTSUPP) }
    do throws(StoreError) {
      switch try tree.attributeValue(attributeName(name), of: self.node(node)) {
      case .text(let text): reply.succeed(text.utf8.span)
      case .bytes(let bytes): reply.succeed(bytes.span)
      }
    } catch {
      fail(reply, error, .node(node))
    }
  }

  /// LISTXATTR: the names of the file's or item's attributes, each ended by NUL.
  public func listxattr(_ node: NodeID, request: Request, reply: consuming ExtendedAttributeReply) {
    do throws(StoreError) {
      var names: [UInt8] = []
      for name in try tree.attributeNames(of: self.node(node)) { names += name.utf8 + [0] }
      reply.succeed(names.span)
    } catch {
      fail(reply, error, .node(node))
    }
  }

  /// SETXATTR: stores an attribute; a change of an item's protection may ask the user first.
  public func setxattr(
    _ node: NodeID, name: Span<UInt8>, value: Span<UInt8>, flags: Int32, request: Request,
    reply: consuming EmptyReply
  ) {
    do throws(StoreError) {
      let name = try attributeName(name)
      let condition = try condition(flags)
      let (value, caller) = (value.array, request.caller)
      withAccess(reply, of: .node(node), by: caller) { [self] () throws(StoreError) in
        try tree.permission(toSet: name, to: value, of: self.node(node), by: caller)
      } _: { [self] reply, permit in
        performAsync(reply, of: .node(node)) { [self] () throws(StoreError) in
          let node = try self.node(node)
          try tree.setAttribute(name, to: value, of: node, if: condition, by: caller, permit)
          // Another type is another text; the kernel takes a new attribute for a new time only.
          if cache.beginDrop(of: node, unlessOf: tree.storedVersion(of: node)) {
            cache.dropAttributes(of: node)
          }
        }
      }
    } catch {
      fail(reply, error, .node(node))
    }
  }

  /// REMOVEXATTR: removes an attribute; a change of an item's protection may ask the user first.
  public func removexattr(
    _ node: NodeID, name: Span<UInt8>, request: Request, reply: consuming EmptyReply
  ) {
    do throws(StoreError) {
      let name = try attributeName(name)
      let caller = request.caller
      withAccess(reply, of: .node(node), by: caller) { [self] () throws(StoreError) in
        try tree.permission(toSet: name, to: nil, of: self.node(node), by: caller)
      } _: { [self] reply, permit in
        performAsync(reply, of: .node(node)) { [self] () throws(StoreError) in
          try tree.removeAttribute(name, of: self.node(node), permit)
        }
      }
    } catch {
      fail(reply, error, .node(node))
    }
  }

  private func attributeName(_ name: Span<UInt8>) throws(StoreError) -> String {
    guard name.isUserAttribute else { throw .unsupported(reason: "only names below `user.` are kept") }
    guard let string = ExactString(utf8: name) else { throw .invalidValue(reason: "not UTF-8") }
    return string.string
  }

  private func condition(_ flags: Int32) throws(StoreError) -> AttributeCondition {
    switch flags {
    case 0: .always
    // XATTR_CREATE and XATTR_REPLACE of linux/xattr.h, which Glibc's module leaves out.
    case 1: .mustBeMissing
    case 2: .mustExist
    default: throw .invalidValue(reason: "contradictory flags")
    }
  }
}
