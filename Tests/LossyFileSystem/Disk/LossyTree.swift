import Fuse
import Platform
import Synchronization

/// A lossy disk for the kernel.
final class LossyTree: FileSystem {
  struct State {
    var disk: LossyDisk
    var cuts: PowerCuts
  }

  let state: Mutex<State>
  /// The kernel may cache without limit: no other process changes the disk.
  static let timeout = 3600.0

  init(_ disk: LossyDisk, _ cuts: PowerCuts) {
    state = Mutex(State(disk: disk, cuts: cuts))
  }

  /// Changes the disk, which may be cut just before.
  func change<Result: Sendable>(_ body: (inout LossyDisk) throws(Errno) -> Result) throws(Errno) -> Result {
    try state.withLock { state throws(Errno) in
      state.cuts.happen(to: state.disk, before: .all)
      return try body(&state.disk)
    }
  }

  /// fsync(2) of a file or folder, which may come too late.
  func synchronize(_ node: NodeID) {
    state.withLock { state in
      state.cuts.happen(to: state.disk, before: .synchronizations)
      state.disk.synchronize(node.rawValue)
    }
  }
}

// MARK: - Names

extension LossyTree {
  func lookup(_ name: Span<UInt8>, in parent: NodeID, request: Request, reply: consuming EntryReply) {
    let name = name.copied
    let entry = state.withLock { state in
      state.disk.find(name, in: parent.rawValue).flatMap { state.disk.entry($0) }
    }
    guard let entry else { return _ = reply.fail(.ENOENT) }
    reply.succeed(entry)
  }

  func mkdir(
    _ name: Span<UInt8>, in parent: NodeID, mode: UInt32, request: Request, reply: consuming EntryReply
  ) {
    let name = name.copied
    answer(reply) { disk throws(Errno) in
      let node = LossyDisk.Node(nil, mode: mode, of: request)
      return try disk.create(name, in: parent, node)
    }
  }

  func link(
    _ node: NodeID, as newName: Span<UInt8>, in newParent: NodeID, request: Request,
    reply: consuming EntryReply
  ) {
    let name = newName.copied
    answer(reply) { disk throws(Errno) in
      guard disk.find(name, in: newParent.rawValue) == nil else { throw .EEXIST }
      disk.link(node.rawValue, name, in: newParent.rawValue)
      return node.rawValue
    }
  }

  func unlink(_ name: Span<UInt8>, in parent: NodeID, request: Request, reply: consuming EmptyReply) {
    let name = name.copied
    answer(reply) { disk throws(Errno) in
      guard disk.find(name, in: parent.rawValue) != nil else { throw .ENOENT }
      disk.unlink(name, in: parent.rawValue)
    }
  }

  func rmdir(_ name: Span<UInt8>, in parent: NodeID, request: Request, reply: consuming EmptyReply) {
    let name = name.copied
    answer(reply) { disk throws(Errno) in
      guard let node = disk.find(name, in: parent.rawValue) else { throw .ENOENT }
      guard disk[node]?.names.isEmpty == true else { throw .ENOTEMPTY }
      disk.unlink(name, in: parent.rawValue)
    }
  }

  func rename(
    _ name: Span<UInt8>, in parent: NodeID, to newName: Span<UInt8>, in newParent: NodeID, flags: UInt32,
    request: Request, reply: consuming EmptyReply
  ) {
    let (name, newName) = (name.copied, newName.copied)
    answer(reply) { disk throws(Errno) in
      // RENAME_NOREPLACE and RENAME_EXCHANGE, which Glibc's module does not have.
      guard flags <= 2 else { throw .EINVAL }
      if flags == 2 {
        guard parent == newParent, disk.find(newName, in: parent.rawValue) != nil else { throw .EINVAL }
        return disk.exchange(name, newName, in: parent.rawValue)
      }
      guard flags == 0 || disk.find(newName, in: newParent.rawValue) == nil else { throw .EEXIST }
      disk.rename(name, in: parent.rawValue, to: newName, in: newParent.rawValue)
    }
  }
}

// MARK: - Answers

extension LossyTree {
  /// Answers with the node that `body` made or linked.
  func answer(
    _ reply: consuming EntryReply, _ body: (inout LossyDisk) throws(Errno) -> UInt64
  ) {
    let entry: Entry?
    do {
      entry = try change { disk throws(Errno) in
        let node = try body(&disk)
        return disk.entry(node)
      }
    } catch {
      return _ = reply.fail(error)
    }
    guard let entry else { return _ = reply.fail(.ENOENT) }
    reply.succeed(entry)
  }

  func answer(_ reply: consuming EmptyReply, _ body: (inout LossyDisk) throws(Errno) -> Void) {
    do {
      try change(body)
    } catch {
      return _ = reply.fail(error)
    }
    reply.succeed()
  }
}

extension LossyDisk {
  func entry(_ node: UInt64) -> Entry? {
    guard let attributes = attributes(node) else { return nil }
    return Entry(
      node: NodeID(rawValue: node), attributes: attributes, attributesTimeout: LossyTree.timeout,
      entryTimeout: LossyTree.timeout)
  }

  func attributes(_ number: UInt64) -> Attributes? {
    guard let node = self[number] else { return nil }
    return Attributes(
      inode: number, kind: node.file == nil ? .directory : .file, permissions: node.mode,
      linkCount: UInt32(links(to: number)), userID: node.owner, groupID: node.group,
      size: node.file?.size ?? 0,
      time: Timestamp(seconds: node.modified.seconds, nanoseconds: node.modified.nanoseconds))
  }

  mutating func create(_ name: Name, in parent: NodeID, _ node: Node) throws(Errno) -> UInt64 {
    guard find(name, in: parent.rawValue) == nil else { throw .EEXIST }
    return make(name, in: parent.rawValue, node)
  }
}

extension LossyDisk.Node {
  init(_ file: LossyFile?, mode: UInt32, of request: Request) {
    self.init(
      mode: mode & 0o7777, owner: request.userID, group: request.groupID, modified: .now, file: file)
  }
}

extension Span<UInt8> {
  var copied: [UInt8] { indices.map { self[$0] } }
}
