import Model
import Store
import Synchronization

/// The content that a file was opened on, as far as stat(2) is concerned.
struct Opening: Sendable {
  /// The thread that opened the file.
  let caller: Caller
  /// When that content had changed last.
  var modified: Timestamp
  /// Whether a program has read to the end of it.
  var isRead = false

  /// nil: nothing can be read.
  init?(_ mode: OpenMode, _ caller: Caller, modified: Timestamp) {
    guard mode.contains(.read), !mode.contains(.truncate) else { return nil }
    (self.caller, self.modified) = (caller, modified)
  }
}

/// The open files that have content of their open, by the numbers of their nodes.
struct OpenReaders {
  struct Reader: Sendable {
    let handle: WeakHandle
    let number: ObjectIdentifier
    let opener: Caller
    let opened: ContinuousClock.Instant
  }

  private var readers: [UInt64: [Reader]] = [:]

  mutating func add(_ handle: Handle, opener: Caller, to node: UInt64) {
    readers[node, default: []].append(
      Reader(
        handle: WeakHandle(handle), number: ObjectIdentifier(handle), opener: opener,
        opened: ContinuousClock.now))
  }

  mutating func remove(_ handle: ObjectIdentifier, from node: UInt64) {
    guard let index = readers.index(forKey: node) else { return }
    readers.values[index].removeAll { $0.number == handle }
    if readers.values[index].isEmpty { readers.remove(at: index) }
  }

  /// In the order in which they were opened.
  func of(_ node: UInt64) -> [Reader] { readers[node] ?? [] }
}

// A program asks for the size of a file after it has opened it, and reads so many bytes. The kernel asks for the status of the file
// without the handle (`fuse_getattr` in the kernel's fs/fuse/dir.c), so the handle is found by the process.
extension FileTree {
  /// How long an open file counts that is not read: a program may keep one open as a lock, and ask for the status by its path.
  private static let patience = Duration.seconds(60)

  /// The size and the time of the content that a caller has opened and not read to its end, where another one is stored by now; nil: there
  /// is no such open file.
  ///
  /// The newest one of the calling thread counts, else of its process; without one, that of an ancestor, which may have
  /// passed it on.
  func statusAtOpen(
    of node: Node, for caller: Caller, unlessAs stored: NodeStatus
  ) -> (size: Int, modified: Timestamp)? {
    let readers = openReaders.withLock { $0.of(node.number) }
    let start = ContinuousClock.now - Self.patience
    let unread = readers.filter { $0.opened > start && $0.handle.handle?.isUnread == true }
    let isAnyOutdated = unread.contains { reader in
      reader.handle.handle?.statusAtOpen.map { $0 != (stored.size, stored.modified) } ?? false
    }
    guard isAnyOutdated else { return nil }
    let own = unread.last { $0.opener == caller } ?? unread.last { $0.opener.isOfSameProcess(as: caller) }
    if let own { return own.handle.handle?.statusAtOpen }
    // With one that it has read, the caller opens the file by itself.
    guard !readers.contains(where: { $0.opener.isOfSameProcess(as: caller) }) else { return nil }
    return unread.last { reader in
      reader.opener.identity().process.map { caller.descends(from: $0) } ?? false
    }?.handle.handle?.statusAtOpen
  }

  /// Whether a file that is open shows another value of a key than the stored one.
  public func hasOutdatedReaders(_ node: Node) -> Bool {
    openReaders.withLock { $0.of(node.number) }.contains { $0.handle.handle?.isOutdated == true }
  }

  /// A time of a file was set: it counts for every open file too.
  func noteTime(_ modified: Timestamp, of node: Node) {
    for reader in openReaders.withLock({ $0.of(node.number) }) {
      reader.handle.handle?.state.withLock { $0.opening?.modified = modified }
    }
  }
}

extension Handle {
  /// The size and the time of the content that it was opened on, while that is neither read to its end nor written; nil: those of the
  /// stored one count.
  var statusAtOpen: (size: Int, modified: Timestamp)? {
    let opening = state.withLock { state -> Opening? in
      guard state.fate.error == nil, !hasUncommitted(state) else { return nil }
      // The base of a secret was read when it was opened; that of a key is in memory.
      return node.isSecret && state.draft.lacksBase ? nil : state.opening
    }
    guard let opening, !opening.isRead, node.isSecret || isOutdated, let size = snapshotSize else {
      return nil
    }
    return (size, opening.modified)
  }

  /// Whether no program has read it to its end, or written it.
  var isUnread: Bool { state.withLock { $0.opening?.isRead == false } }

  /// A program has read up to `end`.
  public func noteRead(to end: Int) {
    state.withLock { state in
      if let opening = state.opening, !opening.isRead, end >= state.draft.count(stored: 0) {
        state.opening?.isRead = true
      }
    }
  }

  func leaveReaders() {
    guard state.withLock({ $0.opening.take() }) != nil else { return }
    tree.openReaders.withLock { $0.remove(ObjectIdentifier(self), from: node.number) }
  }
}
