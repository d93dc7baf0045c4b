public import Fuse
import Model
import Platform
import Tree

extension TreeFileSystem {
  /// A listing with so many entries takes some hundred kilobytes.
  private static let largeListing = 1000

  /// OPENDIR: reads the whole listing, so that later READDIRs of this handle are consistent.
  public func opendir(_ node: NodeID, flags: Int32, request: Request, reply: consuming OpenReply) {
    guard !isDetached else { return _ = reply.fail(.ENOTCONN) }
    let list: @Sendable () throws(StoreError) -> OpenDirectory = { [self] () throws(StoreError) in
      let node = try self.node(node)
      return OpenDirectory(node, try tree.list(node))
    }
    guard !mayBlock(lookingIn: node) else {
      return performAsync(reply, of: .found(node), list) { Self.answer($0, $1) }
    }
    do throws(StoreError) {
      Self.answer(reply, try list())
    } catch {
      fail(reply, error, .found(node))
    }
  }

  private static func answer(_ reply: consuming OpenReply, _ directory: OpenDirectory) {
    let number = OpenFiles.number(for: directory)
    if !reply.succeed(number) { OpenFiles.closeDirectory(number) }
  }

  /// READDIR: the entries from an offset on, as of OPENDIR.
  public func readdir(
    _ node: NodeID, handle: FileHandle, offset: Int, request: Request, reply: consuming DirectoryReply
  ) {
    let directory = OpenFiles.directory(handle)
    var reply = reply
    for index in directory.indices(from: offset) {
      let isAdded: Bool
      if let entry = directory[index] {
        let kind: FileKind = entry.isDirectory ? .directory : .file
        isAdded = reply.add(
          entry.name.utf8.span, inode: tree.number(of: entry), kind: kind, nextOffset: index + 1)
      } else {
        isAdded = reply.add(
          directory.dots(index).utf8.span, inode: directory.node.number, kind: .directory,
          nextOffset: index + 1)
      }
      guard isAdded else { break }
    }
    reply.succeed()
  }

  /// READDIRPLUS: as `readdir`, with the attributes of each entry, each of which counts as a lookup.
  public func readdirplus(
    _ node: NodeID, handle: FileHandle, offset: Int, request: Request, reply: consuming DirectoryPlusReply
  ) {
    let directory = OpenFiles.directory(handle)
    var reply = reply
    var counted: [NodeID] = []
    for index in directory.indices(from: offset) {
      guard let line = directory[index] else {
        let isAdded = reply.addName(
          directory.dots(index).utf8.span, inode: directory.node.number, kind: .directory,
          nextOffset: index + 1)
        guard isAdded else { break }
        continue
      }
      // Gone since the directory was opened: nothing is lost by leaving it out.
      guard let entry = try? cache.entry(of: tree.node(of: line), for: request.caller) else { continue }
      if cache.endsReads(entry) {
        // The kernel looks it up if it needs it, and that waits for the readers.
        forget(entry.node, lookups: 1)
        let kind: FileKind = line.isDirectory ? .directory : .file
        guard
          reply.addName(
            line.name.utf8.span, inode: entry.node.rawValue, kind: kind, nextOffset: index + 1)
        else { break }
        continue
      }
      guard reply.add(line.name.utf8.span, entry: entry, nextOffset: index + 1) else {
        forget(entry.node, lookups: 1)
        break
      }
      counted.append(entry.node)
    }
    if !reply.succeed() { for node in counted { forget(node, lookups: 1) } }
  }

  /// RELEASEDIR: drops the listing.
  public func releasedir(
    _ node: NodeID, handle: FileHandle, request: Request, reply: consuming EmptyReply
  ) {
    let isLarge = OpenFiles.directory(handle).entries.count >= Self.largeListing
    OpenFiles.closeDirectory(handle)
    reply.succeed()
    if isLarge { cache.release.plan() }
  }

  /// FSYNCDIR: returns when the directory's suite or the keychain is on the disk.
  public func fsyncdir(
    _ node: NodeID, handle: FileHandle, scope: SyncScope, request: Request, reply: consuming EmptyReply
  ) {
    performAsync(reply, of: .node(node)) { [self] () throws(StoreError) in
      try tree.synchronize(self.node(node))
    }
  }
}

extension OpenDirectory {
  /// The positions from an offset on, which lseek(2) may have set to any number.
  fileprivate func indices(from offset: Int) -> Range<Int> {
    let end = entries.count + 2
    return min(max(offset, 0), end)..<end
  }

  /// nil: `.` and `..`, which come first.
  fileprivate subscript(index: Int) -> DirectoryEntry? {
    index < 2 ? nil : entries[index - 2]
  }

  fileprivate func dots(_ index: Int) -> String { index == 0 ? "." : ".." }
}
