import Dispatch
import Fuse
import Glibc
import Model
import Platform
import Store
import Synchronization
public import Tree

/// The tree as the kernel wants it: each operation is one call of `FileTree`, and one reply.
///
/// An operation that reads memory is answered on the worker that took the request. One that may wait for a disk or for
/// another process's lock runs on a queue with the reply parked, so that no worker is ever held up; one
/// that may wait for a process that hangs, on a thread of its own.
public final class TreeFileSystem: Sendable {
  let tree: FileTree
  let userID = getuid()
  let groupID = getgid()
  let commits = DispatchGroup()
  private let running = Atomic(0)
  /// So many commits run on Dispatch's threads, of which there are few; what more there is, where another process's lock
  /// holds them up, gets threads of its own.
  private static let mostShared = 32
  let waiting = WaitingThreads()
  let pages = Mutex(PageCache())
  /// The lookup count of each node: entries that the kernel was given and has not forgotten.
  let lookups = Mutex<[UInt64: UInt64]>([:])
  let cachedAttributes = Mutex(CachedAttributes())
  let openFiles = Mutex(OpenFileCount())
  /// The files that are read through the kernel's page cache.
  let cachedReaders = Mutex<[UInt64: [OpenFile]]>([:])
  let kernel: Mutex<CacheInvalidator?> = Mutex(nil)
  let replays = Mutex(Replays())
  /// The latest refusals, for `keyhole status`.
  public let refusals = Refusals()
  /// The latest operations that took long, for `keyhole status`.
  public let delays = Delays()

  /// The tree to show. The kernel's cache is not notified before a session is attached.
  public init(_ tree: FileTree) {
    self.tree = tree
  }

  /// How long the kernel may believe a status: long, because it is notified of changes from outside.
  static let statusTimeout: Double = 86_400
  /// How long it may believe a name. Of names it is not told: for that it takes the directory's lock, and a
  /// process that is killed while it waits for it would never be gone, and every caller with it. One that
  /// uses a name that was removed elsewhere is answered ESTALE, and then the kernel looks it up again.
  static let nameTimeout: Double = 1

  func node(_ id: NodeID) throws(StoreError) -> Node {
    // A number that was handed out and is gone: the file was deleted elsewhere.
    guard let node = tree.node(id.rawValue) else { throw .notFound }
    return node
  }

  /// The entry of a node for the kernel, which then counts as looked up once more.
  func entry(of node: Node, for caller: Caller) throws(StoreError) -> Entry {
    let (attributes, timeout) = try attributes(of: node, for: caller)
    lookups.withLock { $0[node.number, default: 0] += 1 }
    return Entry(
      node: NodeID(rawValue: node.number), attributes: attributes, attributesTimeout: timeout,
      entryTimeout: Self.nameTimeout)
  }

  func attributes(
    of node: Node, for caller: Caller
  ) throws(StoreError) -> (Attributes, timeout: Double) {
    // Asked first: a write that begins while the status is read makes it short-lived.
    guard node.isStable, !hasOutdatedReaders(node) else {
      return (Attributes(try tree.status(of: node, for: caller), of: node, userID, groupID), 0)
    }
    cachedAttributes.withLock { $0.beginReply(node.number) }
    var version: UInt64?
    defer { cachedAttributes.withLock { [version] in $0.endReply(node.number, version: version) } }
    let status = try tree.status(of: node, for: caller)
    // Of a file that is created and not committed, the next commit changes the size without a word.
    if status.version != 0 { version = status.version }
    let attributes = Attributes(status, of: node, userID, groupID)
    return (attributes, version == nil ? 0 : Self.statusTimeout)
  }

  /// Runs `work` where it may wait, and answers when it is done; `onAbandoned` gets the result where the caller
  /// has gone away meanwhile.
  ///
  /// A caller that is interrupted gets EINTR only if the wait is a long one: a window that changes its
  /// size must not make a save look failed.
  func performAsync<Answer: ~Copyable & Sendable, Value: Sendable>(
    _ reply: consuming Reply<Answer>, of node: NodeID, about name: EntryName? = nil,
    staleOnNotFound: Bool = false, _ work: @escaping @Sendable () throws(StoreError) -> Value,
    answer: @escaping @Sendable (consuming Reply<Answer>, Value) -> Void,
    onAbandoned: @escaping @Sendable (Value) -> Void = { _ in }
  ) {
    let found = tree.node(node.rawValue)
    let patience = DispatchTimeInterval.milliseconds(found.map(tree.mayBlock(using:)) == true ? 20 : 500)
    let parked = reply.park { parked in
      Background.run(after: patience) {
        _ = parked.claim()?.fail(.EINTR)
      }
    }
    let began = ContinuousClock.now
    let isTaken = run(for: found) { [self] in
      let result = Result(catching: work)
      delays.note(began.duration(to: .now), path: name.map(path) ?? path(of: node))
      guard let reply = parked.claim() else {
        if case .success(let value) = result { onAbandoned(value) }
        return
      }
      switch result {
      case .success(let value): answer(reply, value)
      case .failure(let error):
        if staleOnNotFound { refuseNode(reply, error, node) } else { refuse(reply, error, node, about: name) }
      }
    }
    if !isTaken, let reply = parked.claim() { refuse(reply, .tooManyOpen, node, about: name) }
  }

  func performAsync(
    _ reply: consuming EmptyReply, of node: NodeID, about name: EntryName? = nil,
    _ work: @escaping @Sendable () throws(StoreError) -> Void
  ) {
    performAsync(reply, of: node, about: name, work) { reply, _ in reply.succeed() }
  }

  private func run(for node: Node?, _ work: @escaping @Sendable () -> Void) -> Bool {
    if let node, tree.mayBlock(using: node) { return waiting.run(work) }
    let isBusy = node.map(tree.mayWait(using:)) ?? false
    commits.enter()
    let isShared = running.add(1, ordering: .relaxed).newValue <= Self.mostShared && !isBusy
    let counted: @Sendable () -> Void = { [self] in
      work()
      running.subtract(1, ordering: .relaxed)
      commits.leave()
    }
    // Where there are too many threads already, it waits its turn: what was written must not be lost.
    if isShared || !waiting.run(counted) { Background.run(counted) }
    return true
  }

  /// The kernel has found a node by a name that does not exist any more: it shall look again.
  func refuseNode<Answer: ~Copyable>(
    _ reply: consuming Reply<Answer>, _ error: StoreError, _ node: NodeID
  ) {
    guard error == .notFound else { return refuse(reply, error, node) }
    reply.fail(.ESTALE)
  }

  /// Answers with the error's number, and remembers the reason for `keyhole status`.
  ///
  /// `name`: it is about what has, or was to have, that name, and not about the node.
  func refuse<Answer: ~Copyable>(
    _ reply: consuming Reply<Answer>, _ error: StoreError, _ node: NodeID, about name: EntryName? = nil
  ) {
    refusals.note(path: name.map(path) ?? path(of: node), error)
    reply.fail(Errno(error))
  }

  func path(_ name: EntryName) -> String {
    let directory = path(of: name.directory)
    return (directory.isEmpty ? "" : directory + "/") + String(decoding: name.bytes, as: UTF8.self)
  }

  private func path(of node: NodeID) -> String { tree.node(node.rawValue)?.path ?? "" }
}

/// A name that a caller gave, of what may not be there.
struct EntryName: Sendable {
  let bytes: [UInt8]
  let directory: NodeID

  init(_ bytes: [UInt8], in directory: NodeID) {
    self.bytes = bytes
    self.directory = directory
  }
}

extension Attributes {
  fileprivate init(_ status: NodeStatus, of node: Node, _ userID: UInt32, _ groupID: UInt32) {
    self.init(
      inode: node.number, kind: status.kind.fileKind, permissions: status.kind.permissions,
      linkCount: UInt32(status.links), userID: userID, groupID: groupID, size: status.size,
      time: Timestamp(status.modified))
    if let accessed = status.accessed { accessTime = Timestamp(accessed) }
  }
}

extension Node {
  /// Only a change that the kernel is notified of can change its status.
  fileprivate var isStable: Bool {
    !isDirectory && !isSecret && !isScratch && !isControl && !isBeingWritten && !isRemoved
  }
}
