import Fuse
import Glibc
import Platform
import Synchronization

extension LossyTree {
  func getattr(_ node: NodeID, handle: FileHandle?, request: Request, reply: consuming AttributesReply) {
    let attributes = state.withLock { $0.disk.attributes(node.rawValue) }
    guard let attributes else { return _ = reply.fail(.ENOENT) }
    reply.succeed(attributes, timeout: Self.timeout)
  }

  func setattr(
    _ node: NodeID, to changes: AttributeChanges, handle: FileHandle?, request: Request,
    reply: consuming AttributesReply
  ) {
    let attributes = try? change { disk throws(Errno) in
      disk[node.rawValue]?.apply(changes)
      return disk.attributes(node.rawValue)
    }
    guard let attributes = attributes ?? nil else { return _ = reply.fail(.ENOENT) }
    reply.succeed(attributes, timeout: Self.timeout)
  }

  func open(_ node: NodeID, flags: Int32, request: Request, reply: consuming OpenReply) {
    if flags & O_TRUNC != 0 {
      try? change { disk throws(Errno) in disk[node.rawValue]?.file?.truncate(to: 0) }
    }
    reply.succeed(FileHandle(rawValue: 0), options: .keepCache)
  }

  func create(
    _ name: Span<UInt8>, in parent: NodeID, mode: UInt32, flags: Int32, request: Request,
    reply: consuming CreateReply
  ) {
    let name = name.copied
    let entry = try? change { disk throws(Errno) in
      let node = LossyDisk.Node(LossyFile(), mode: mode, of: request)
      let number = try disk.create(name, in: parent, node)
      return disk.entry(number)
    }
    guard let entry = entry ?? nil else { return _ = reply.fail(.EEXIST) }
    reply.succeed(entry, handle: FileHandle(rawValue: 0), options: .keepCache)
  }

  func read(
    _ node: NodeID, handle: FileHandle, offset: Int, size: Int, origin: ReadOrigin, request: Request,
    reply: consuming DataReply
  ) {
    let bytes = state.withLock { $0.disk[node.rawValue]?.file?.bytes(at: offset, count: size) ?? [] }
    reply.succeed(bytes.span)
  }

  func write(
    _ node: NodeID, handle: FileHandle, offset: Int, bytes: Span<UInt8>, origin: WriteOrigin,
    request: Request,
    reply: consuming WriteReply
  ) {
    state.withLock { state in
      state.cuts.happen(to: state.disk, before: .all)
      state.disk[node.rawValue]?.file?.write(bytes, at: offset)
      state.disk[node.rawValue]?.modified = .now
    }
    reply.succeed(written: bytes.count)
  }

  func fsync(
    _ node: NodeID, handle: FileHandle, scope: SyncScope, request: Request, reply: consuming EmptyReply
  ) {
    synchronize(node)
    reply.succeed()
  }

  func fsyncdir(
    _ node: NodeID, handle: FileHandle, scope: SyncScope, request: Request, reply: consuming EmptyReply
  ) {
    synchronize(node)
    reply.succeed()
  }

  func fallocate(
    _ node: NodeID, handle: FileHandle, mode: Int32, offset: Int, length: Int, request: Request,
    reply: consuming EmptyReply
  ) {
    guard mode == 0 else { return _ = reply.fail(.EOPNOTSUPP) }
    answer(reply) { disk throws(Errno) in
      guard let size = disk[node.rawValue]?.file?.size, size < offset + length else { return }
      disk[node.rawValue]?.file?.truncate(to: offset + length)
    }
  }
}

// MARK: - Folders and the rest

extension LossyTree {
  func readdir(
    _ node: NodeID, handle: FileHandle, offset: Int, request: Request, reply: consuming DirectoryReply
  ) {
    var reply = reply
    for entry in listing(node).dropFirst(offset) {
      guard
        reply.add(entry.name.span, inode: entry.node, kind: entry.kind, nextOffset: entry.offset)
      else { break }
    }
    reply.succeed()
  }

  func readdirplus(
    _ node: NodeID, handle: FileHandle, offset: Int, request: Request, reply: consuming DirectoryPlusReply
  ) {
    var reply = reply
    for entry in listing(node).dropFirst(offset) {
      guard
        reply.addName(entry.name.span, inode: entry.node, kind: entry.kind, nextOffset: entry.offset)
      else { break }
    }
    reply.succeed()
  }

  func statfs(_ node: NodeID, request: Request, reply: consuming StatisticsReply) {
    let half: UInt = 1 << 18
    reply.succeed(
      Statistics(
        blocks: 2 * half, freeBlocks: half, availableBlocks: half, files: 2 * half, freeFiles: half))
  }

  /// There are none, and the kernel need not ask again.
  func getxattr(
    _ node: NodeID, name: Span<UInt8>, request: Request, reply: consuming ExtendedAttributeReply
  ) {
    reply.fail(.ENOSYS)
  }

  private func listing(
    _ node: NodeID
  ) -> [(name: LossyDisk.Name, node: UInt64, kind: FileKind, offset: Int)] {
    state.withLock { state in
      let names = state.disk[node.rawValue]?.names ?? [:]
      return names.sorted { $0.key.lexicographicallyPrecedes($1.key) }.enumerated().map { index, entry in
        let isFolder = state.disk[entry.value]?.file == nil
        return (entry.key, entry.value, isFolder ? .directory : .file, index + 1)
      }
    }
  }
}

extension LossyDisk.Node {
  fileprivate mutating func apply(_ changes: AttributeChanges) {
    if let size = changes.size {
      file?.truncate(to: size)
      modified = .now
    }
    mode = changes.permissions ?? mode
    owner = changes.userID ?? owner
    group = changes.groupID ?? group
    switch changes.modificationTime {
    case .now: modified = .now
    case .at(let time): modified = LossyDisk.Moment(seconds: time.seconds, nanoseconds: time.nanoseconds)
    case nil: break
    }
  }
}
