import Dispatch
import Fuse
import Platform
import Store
import Synchronization
import Tree

// Open files, as far as the kernel's caches are concerned.
extension KernelCache {
  /// How long an O_TRUNC, a drop of attributes or a replay waits for readers through the page cache: `tail -f` may read on and on.
  private static let patienceWithReaders = DispatchTimeInterval.milliseconds(10)

  /// How the kernel shall treat a new handle.
  ///
  /// `dropsAttributes`: the kernel may have attributes of another value than the handle's. Then `dropAttributes` has to be
  /// called before the reply.
  func open(_ handle: Handle) -> (OpenFile, OpenOptions, dropsAttributes: Bool) {
    let isWriter = handle.mode.contains(.write)
    // A reader that writes nothing needs no flush at its close, which would be another round trip.
    let options: OpenOptions = isWriter ? [] : .noFlush
    guard handle.version != 0 else {
      return (OpenFile(handle, isCached: false), options.union(.directIO), false)
    }
    let (file, use, dropsAttributes, waiting) = begin(handle, mayCache: !isWriter)
    waiting.forEach { $0() }
    switch use {
    case .direct: return (file, options.union(.directIO), dropsAttributes)
    case .fresh: return (file, options, dropsAttributes)
    case .kept: return (file, options.union(.keepCache), dropsAttributes)
    }
  }

  /// In one step, under the lock of the readers: the next one that is opened sees this one and its drop.
  private func begin(
    _ handle: Handle, mayCache: Bool
  ) -> (OpenFile, PageCache.Use, dropsAttributes: Bool, waiting: [@Sendable () -> Void]) {
    let (node, version) = (handle.node, handle.version)
    return pages.withLock { pages in
      let readers = pages.readers(of: version, in: node.number)
      var use = mayCache ? pages.open(node.number, version: version) : .direct
      var waiting: [@Sendable () -> Void] = []
      // Looked at after the reader is counted, as a writer looks for readers after it has made itself known: one of them sees
      // the other.
      let isBeingDropped = cachedAttributes.withLock { $0.isBeingDropped(node.number) }
      if use != .direct, node.isBeingWritten || isBeingDropped {
        use = .direct
        waiting = pages.withdraw(node.number)
      }
      let file = OpenFile(handle, isCached: use != .direct)
      // Before the drop is begun: a status that is read later is short-lived where this reader is outdated.
      if file.isCached { cachedReaders.withLock { $0[node.number, default: []].append(file) } }
      let dropsAttributes = cachedAttributes.withLock {
        $0.beginDrop(node.number, unlessOf: version, isRead: readers > 0)
      }
      return (file, use, dropsAttributes, waiting)
    }
  }

  /// Whether the attributes of a file have to be dropped, as `version` is stored; nil: the file is gone. Then
  /// `dropAttributes` has to be called.
  ///
  /// Under the lock of the readers: one that is opened later sees that a drop is under way.
  func beginDrop(of node: Node, unlessOf version: UInt64?) -> Bool {
    pages.withLock { pages in
      let isRead = version.map { pages.readers(of: $0, in: node.number) > 0 } ?? false
      return cachedAttributes.withLock { $0.beginDrop(node.number, unlessOf: version, isRead: isRead) }
    }
  }

  /// A handle that reads past the page cache was mapped, and the kernel fills the cache with its value. Until it is closed,
  /// other handles read past the cache too.
  func noteMapping(of file: OpenFile) {
    guard !file.isCached, file.noteCachedPages(), !file.handle.node.isSecret else { return }
    pages.withLock { $0.beginMapping(file.handle.node.number) }
  }

  /// The file is closed.
  func close(_ file: OpenFile) {
    if file.isCached { leave(file) { $0.close($1) } }
    guard file.hasCachedPages else { return }
    let node = file.handle.node
    if node.isSecret { dropPages(of: [node]) } else { pages.withLock { $0.endMapping(node.number) } }
  }

  /// The caller was gone before it got the file.
  func withdraw(_ file: OpenFile) {
    if file.isCached { leave(file) { $0.withdraw($1) } }
  }

  private func leave(_ file: OpenFile, _ change: (inout PageCache, UInt64) -> [@Sendable () -> Void]) {
    let number = file.handle.node.number
    cachedReaders.withLock { readers in
      guard let index = readers.index(forKey: number) else { return }
      readers.values[index].removeAll { $0 === file }
      if readers.values[index].isEmpty { readers.remove(at: index) }
    }
    pages.withLock { change(&$0, number) }.forEach { $0() }
  }

  /// Lets readers through the page cache read on where their value has grown. They share the cache, so all do, or none.
  func readOn(_ node: Node) {
    let readers = cachedReaders.withLock { $0[node.number] ?? [] }.map(\.handle)
    guard let version = tree.readOn(readers) else { return }
    pages.withLock { pages in
      guard pages.replace(node.number, with: version, for: readers.count) else { return }
      cachedAttributes.withLock { $0.noteGrowth(node.number) }
    }
  }

  /// Whether the file's readers through the page cache have another value, and so another size, than the stored one.
  func hasOutdatedReaders(_ node: Node) -> Bool {
    (cachedReaders.withLock { $0[node.number] })?.contains(where: \.handle.isOutdated) ?? false
  }

  /// Whether a reply with an entry would end reads through the page cache: see `endsReads(of:at:)`.
  func endsReads(_ entry: Entry) -> Bool {
    // A size that the kernel may keep is that of all readers.
    guard entry.attributesTimeout == 0, let node = tree.node(entry.node.rawValue) else { return false }
    return endsReads(of: node, at: entry.attributes.size)
  }

  /// Whether the file's readers through the page cache have a value of another size: the kernel takes over the size of each reply, and a read that is under way
  /// ends there.
  func endsReads(of node: Node, at size: Int) -> Bool {
    let readers = cachedReaders.withLock { $0[node.number] } ?? []
    return readers.contains { $0.handle.snapshotSize.map { $0 != size } ?? false }
  }

  /// Whether a file is read through the page cache now.
  func isRead(_ node: Node) -> Bool { pages.withLock { $0.isRead(node.number) } }

  /// Calls `body` once when the file is not read through the page cache any more, but not later than after 10 ms.
  ///
  /// A change of the file's size would end a read that is under way. Readers that were waited for in vain, as `tail -f`,
  /// are not waited for again.
  func whenUnread(_ node: Node, _ body: @escaping @Sendable () -> Void) {
    let turn = Turn()
    let once: @Sendable () -> Void = { if turn.take() { body() } }
    guard let wait = pages.withLock({ $0.wait(for: node.number, once) }) else { return once() }
    Background.run(after: Self.patienceWithReaders) { [self] in giveUp(wait) }
  }

  /// The same on `queue`, after this call. What is waited for first is called first.
  func whenUnreadInTurn(_ node: Node, _ body: @escaping @Sendable () -> Void) {
    let turn = Turn()
    let once: @Sendable () -> Void = { if turn.take() { body() } }
    let later: @Sendable () -> Void = { [queue] in queue.async(execute: once) }
    guard let wait = pages.withLock({ $0.wait(for: node.number, later) }) else { return later() }
    queue.asyncAfter(deadline: .now() + Self.patienceWithReaders) { [self] in giveUp(wait) }
  }

  private func giveUp(_ wait: PageCache.Wait) {
    pages.withLock { $0.giveUp(wait) }.forEach { $0() }
  }
}

/// Something that is done once, by the first caller.
private final class Turn: Sendable {
  private let isTaken = Atomic(false)

  func take() -> Bool { !isTaken.exchange(true, ordering: .acquiringAndReleasing) }
}
