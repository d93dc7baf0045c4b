import Fuse
import Model
import Store
import Synchronization
import Tree

extension KernelCache {
  /// The entry of a node for the kernel, which then counts as looked up once more.
  func entry(of node: Node, for caller: Caller) throws(StoreError) -> Entry {
    // Counted first, as a FORGET of the last lookup takes the node's replies for forgotten.
    let node = tree.countLookup(of: node)
    noteLookup()
    do throws(StoreError) {
      let (attributes, timeout) = try attributes(of: node, for: caller)
      return Entry(node, attributes, timeout: timeout, nameTimeout: Self.nameTimeout)
    } catch {
      forget(NodeID(rawValue: node.number), lookups: 1)
      throw error
    }
  }

  /// An entry with the attributes that its node has now. It counts as the lookup of the one before.
  func renewed(_ entry: Entry, of node: Node, for caller: Caller) throws(StoreError) -> Entry {
    let (attributes, timeout) = try attributes(of: node, for: caller)
    return Entry(node, attributes, timeout: timeout, nameTimeout: Self.nameTimeout)
  }

  /// The entry of a node that the kernel has asked to be made. The kernel takes the attributes of such a reply even where
  /// it has dropped them meanwhile, so it does not keep them.
  func newEntry(of node: Node, for caller: Caller) throws(StoreError) -> Entry {
    let status = try tree.status(of: node, for: caller)
    let node = tree.countLookup(of: node)
    return Entry(
      node, Attributes(status, of: node, userID, groupID), timeout: 0, nameTimeout: Self.nameTimeout)
  }

  /// The entry of a name that is gone: enough to delete it.
  func tombstoneEntry(of node: Node) -> Entry {
    let node = tree.countLookup(of: node)
    let attributes = Attributes(
      inode: node.number, kind: node.isDirectory ? .directory : .file,
      permissions: node.isDirectory ? 0o700 : 0o600, linkCount: node.isDirectory ? 2 : 1, userID: userID,
      groupID: groupID)
    return Entry(node, attributes, timeout: 0, nameTimeout: 0)
  }

  /// Whether the kernel knows a node, so that it can be watched.
  func isKnown(_ node: Node) -> Bool { node === tree.root || node.isLookedUp }

  /// Takes lookups back. A node without lookups is dropped.
  func forget(_ id: NodeID, lookups count: UInt64) {
    tree.forget(id.rawValue, lookups: count) {
      pages.withLock { $0.forget(id.rawValue) }
      cachedAttributes.withLock { $0.forget(id.rawValue) }
    }
  }

  /// The attributes of a node, and how many seconds the kernel may keep them.
  func attributes(
    of node: Node, for caller: Caller
  ) throws(StoreError) -> (Attributes, timeout: Double) {
    guard isSettled(node) else {
      return (Attributes(try tree.status(of: node, for: caller), of: node, userID, groupID), 0)
    }
    let reply = cachedAttributes.withLock { $0.beginReply(node.number) }
    let status: NodeStatus
    do throws(StoreError) { status = try tree.status(of: node, for: caller) } catch {
      _ = cachedAttributes.withLock { $0.endReply(reply, version: nil) }
      throw error
    }
    var version: UInt64?
    // The size of a file that is created and not committed is changed by the next commit, and no change is reported for that.
    // A write or a change that came while the status was read has made it short-lived. Who opens the file from now on drops it.
    if status.version != 0, isSettled(node) { version = status.version }
    let isKept = cachedAttributes.withLock { [version] in $0.endReply(reply, version: version) }
    return (Attributes(status, of: node, userID, groupID), isKept ? Self.attributesTimeout : 0)
  }

  /// Whether the kernel may keep the attributes of a file.
  private func isSettled(_ node: Node) -> Bool { node.changesAreReported && !hasOutdatedReaders(node) }
}

extension Entry {
  fileprivate init(_ node: Node, _ attributes: Attributes, timeout: Double, nameTimeout: Double) {
    self.init(
      node: NodeID(rawValue: node.number), attributes: attributes, attributesTimeout: timeout,
      entryTimeout: nameTimeout)
  }
}

extension Attributes {
  fileprivate init(_ status: NodeStatus, of node: Node, _ userID: UInt32, _ groupID: UInt32) {
    self.init(
      inode: node.number, kind: status.kind.fileKind,
      permissions: node.isCode ? 0o400 : status.kind.permissions,
      linkCount: UInt32(status.links), userID: userID, groupID: groupID, size: status.size,
      time: Timestamp(status.modified))
    if let accessed = status.accessed { accessTime = Timestamp(accessed) }
  }
}
