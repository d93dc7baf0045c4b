import Glibc
import Platform
import Synchronization

@testable import Fuse

/// A small file system in memory: one directory of files. Some names behave in their own way; see ``open``.
class MemoryFileSystem: FileSystem, @unchecked Sendable {
  struct File {
    var bytes: [UInt8] = []
    var attributes: [String: [UInt8]] = [:]
  }

  struct State {
    var names: [[UInt8]: UInt64] = [:]
    var files: [UInt64: File] = [:]
    var last: UInt64 = 1
    var lookups: [[UInt8]] = []
    var openFlags: [Int32] = []
    var getattrs = 0
    var forgotten: [UInt64: UInt64] = [:]
    var flushes = 0
    var releases = 0
  }

  let state = Mutex(State())

  init(_ names: String...) {
    for name in names { _ = add(Array(name.utf8)) }
  }

  func add(_ name: [UInt8]) -> UInt64 {
    state.withLock { state in
      state.last += 1
      state.names[name] = state.last
      state.files[state.last] = File()
      return state.last
    }
  }

  func entry(_ node: UInt64) -> Entry {
    Entry(
      node: NodeID(rawValue: node), attributes: attributes(node), attributesTimeout: 3600, entryTimeout: 3600)
  }

  func attributes(_ node: UInt64) -> Attributes {
    guard node != 1 else { return Attributes(inode: 1, kind: .directory, permissions: 0o700, linkCount: 2) }
    let size = state.withLock { $0.files[node]?.bytes.count ?? 0 }
    return Attributes(inode: node, kind: .file, permissions: 0o600, size: size)
  }

  func lookup(_ name: Span<UInt8>, in parent: NodeID, request: Request, reply: consuming EntryReply) {
    let name = bytes(name)
    let node = state.withLock { state in
      state.lookups.append(name)
      return state.names[name]
    }
    guard let node else {
      reply.succeed(absentFor: 0)
      return
    }
    reply.succeed(entry(node))
  }

  func forget(_ node: NodeID, lookups: UInt64) {
    state.withLock { $0.forgotten[node.rawValue, default: 0] += lookups }
  }

  func getattr(_ node: NodeID, handle: FileHandle?, request: Request, reply: consuming AttributesReply) {
    state.withLock { $0.getattrs += 1 }
    reply.succeed(attributes(node.rawValue), timeout: 3600)
  }

  func setattr(
    _ node: NodeID, to changes: AttributeChanges, handle: FileHandle?, request: Request,
    reply: consuming AttributesReply
  ) {
    if let size = changes.size { resize(node, to: size) }
    reply.succeed(attributes(node.rawValue), timeout: 3600)
  }

  func create(
    _ name: Span<UInt8>, in parent: NodeID, mode: UInt32, flags: Int32, request: Request,
    reply: consuming CreateReply
  ) {
    let node = add(bytes(name))
    reply.succeed(entry(node), handle: FileHandle(rawValue: node), options: .directIO)
  }

  func open(_ node: NodeID, flags: Int32, request: Request, reply: consuming OpenReply) {
    state.withLock { $0.openFlags.append(flags) }
    if flags & O_TRUNC != 0 { resize(node, to: 0) }
    reply.succeed(FileHandle(rawValue: node.rawValue), options: .directIO)
  }

  func read(
    _ node: NodeID, handle: FileHandle, offset: Int, size: Int, origin: ReadOrigin, request: Request,
    reply: consuming DataReply
  ) {
    let bytes = state.withLock { Array(($0.files[node.rawValue]?.bytes ?? []).dropFirst(offset)) }
    reply.succeed(bytes.span)
  }

  func write(
    _ node: NodeID, handle: FileHandle, offset: Int, bytes: Span<UInt8>, origin: WriteOrigin,
    request: Request,
    reply: consuming WriteReply
  ) {
    let new = unsafe bytes.withUnsafeBytes { unsafe Array($0) }
    state.withLock { state in
      var file = state.files[node.rawValue, default: File()]
      let missing = max(0, offset + new.count - file.bytes.count)
      file.bytes += [UInt8](repeating: 0, count: missing)
      file.bytes.replaceSubrange(offset..<offset + new.count, with: new)
      state.files[node.rawValue] = file
    }
    reply.succeed(written: new.count)
  }

  func flush(
    _ node: NodeID, handle: FileHandle, lockOwner: UInt64, request: Request, reply: consuming EmptyReply
  ) {
    state.withLock { $0.flushes += 1 }
    reply.succeed()
  }

  func release(
    _ node: NodeID, handle: FileHandle, origin: ReleaseOrigin, request: Request, reply: consuming EmptyReply
  ) {
    state.withLock { $0.releases += 1 }
    reply.succeed()
  }

  func rename(
    _ name: Span<UInt8>, in parent: NodeID, to newName: Span<UInt8>, in newParent: NodeID, flags: UInt32,
    request: Request, reply: consuming EmptyReply
  ) {
    let (old, new) = (bytes(name), bytes(newName))
    state.withLock { $0.names[new] = $0.names.removeValue(forKey: old) }
    reply.succeed()
  }

  func unlink(_ name: Span<UInt8>, in parent: NodeID, request: Request, reply: consuming EmptyReply) {
    let name = bytes(name)
    state.withLock { _ = $0.names.removeValue(forKey: name) }
    reply.succeed()
  }

  func readdir(
    _ node: NodeID, handle: FileHandle, offset: Int, request: Request, reply: consuming DirectoryReply
  ) {
    for (index, name) in listing.enumerated().dropFirst(offset) {
      guard reply.add(name.0.span, inode: name.1, kind: .file, nextOffset: index + 1) else { break }
    }
    reply.succeed()
  }

  func readdirplus(
    _ node: NodeID, handle: FileHandle, offset: Int, request: Request, reply: consuming DirectoryPlusReply
  ) {
    for (index, name) in listing.enumerated().dropFirst(offset) {
      guard reply.add(name.0.span, entry: entry(name.1), nextOffset: index + 1) else { break }
    }
    reply.succeed()
  }

  func setxattr(
    _ node: NodeID, name: Span<UInt8>, value: Span<UInt8>, flags: Int32, request: Request,
    reply: consuming EmptyReply
  ) {
    let key = String(decoding: bytes(name), as: UTF8.self)
    let value = unsafe value.withUnsafeBytes { unsafe Array($0) }
    state.withLock { $0.files[node.rawValue]?.attributes[key] = value }
    reply.succeed()
  }

  func getxattr(
    _ node: NodeID, name: Span<UInt8>, request: Request, reply: consuming ExtendedAttributeReply
  ) {
    let key = String(decoding: bytes(name), as: UTF8.self)
    guard let value = state.withLock({ $0.files[node.rawValue]?.attributes[key] }) else {
      reply.fail(.ENODATA)
      return
    }
    reply.succeed(value.span)
  }

  func listxattr(_ node: NodeID, request: Request, reply: consuming ExtendedAttributeReply) {
    let names: [String] = state.withLock { $0.files[node.rawValue]?.attributes.keys.sorted() ?? [] }
    let bytes: [UInt8] = names.flatMap { Array($0.utf8) + [0] }
    reply.succeed(bytes.span)
  }

  func bytes(_ name: Span<UInt8>) -> [UInt8] { unsafe name.withUnsafeBufferPointer { unsafe Array($0) } }

  private var listing: [([UInt8], UInt64)] {
    state.withLock { $0.names.map { ($0.key, $0.value) } }.sorted { $0.1 < $1.1 }
  }

  private func resize(_ node: NodeID, to size: Int) {
    state.withLock { state in
      guard var file = state.files[node.rawValue] else { return }
      file.bytes = Array(file.bytes.prefix(size))
      file.bytes += [UInt8](repeating: 0, count: size - file.bytes.count)
      state.files[node.rawValue] = file
    }
  }
}
