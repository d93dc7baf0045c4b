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
    let (file, options) = begin(handle)
    // Last, so that a status that is asked for later is short-lived where the handle is outdated.
    let version = handle.version
    return (file, options, version != 0 && beginDrop(of: handle.node, unlessOf: version, for: file))
  }

  /// Drops the attributes of a file in the kernel, after `open` or `beginDrop`: rules 1 and 3.
  func dropAttributes(of node: Node) {
    invalidateAttributes(of: node)
    cachedAttributes.withLock { $0.endDrop(node.number) }
  }

  /// Whether the attributes of a file have to be dropped, as `version` is served to `file`, or is stored; nil: the file is
  /// gone.
  ///
  /// Under the lock of the readers: one that is opened later sees that a drop is under way.
  func beginDrop(of node: Node, unlessOf version: UInt64?, for file: OpenFile? = nil) -> Bool {
    pages.withLock { pages in
      let readers = version.map { pages.readers(of: $0, in: node.number) } ?? 0
      let isRead = readers > (file?.isCached == true ? 1 : 0)
      return cachedAttributes.withLock { $0.beginDrop(node.number, unlessOf: version, isRead: isRead) }
    }
  }

  private func begin(_ handle: Handle) -> (OpenFile, OpenOptions) {
    let isWriter = handle.mode.contains(.write)
    // A reader that writes nothing needs no flush at its close, which would be another round trip.
    let options: OpenOptions = isWriter ? [] : .noFlush
    let use = isWriter ? .direct : cacheUse(of: handle)
    guard use != .direct else { return (OpenFile(handle, isCached: false), options.union(.directIO)) }
    let file = OpenFile(handle, isCached: true)
    cachedReaders.withLock { $0[handle.node.number, default: []].append(file) }
    return (file, use == .kept ? options.union(.keepCache) : options)
  }

  private func cacheUse(of reader: Handle) -> PageCache.Use {
    let node = reader.node
    guard reader.version != 0 else { return .direct }
    let use = pages.withLock { $0.open(node.number, version: reader.version) }
    // Checked last, as a writer, or a drop, looks for readers after it has made itself known: one of them sees the other.
    let isUnsettled = node.isBeingWritten || cachedAttributes.withLock { $0.isBeingDropped(node.number) }
    guard isUnsettled, use != .direct else { return use }
    pages.withLock { $0.withdraw(node.number) }.forEach { $0() }
    return .direct
  }

  /// The file is closed.
  func close(_ file: OpenFile) {
    if file.isCached { leave(file) { $0.close($1) } }
    if file.isMapped { dropPages(of: [file.handle.node]) }
  }

  /// The caller was gone before it got the file.
  func withdraw(_ file: OpenFile) {
    if file.isCached { leave(file) { $0.withdraw($1) } }
  }

  private func leave(_ file: OpenFile, _ change: (inout PageCache, UInt64) -> [@Sendable () -> Void]) {
    let number = file.handle.node.number
    cachedReaders.withLock { readers in
      readers[number]?.removeAll { $0 === file }
      if readers[number]?.isEmpty == true { readers[number] = nil }
    }
    pages.withLock { change(&$0, number) }.forEach { $0() }
  }

  /// Lets readers through the page cache read on where their value has grown. They share the cache, so all do, or none.
  func readOn(_ node: Node) {
    let readers = cachedReaders.withLock { $0[node.number] ?? [] }.map(\.handle)
    guard let version = tree.readOn(readers) else { return }
    _ = pages.withLock { $0.replace(node.number, with: version, for: readers.count) }
  }

  /// Whether the file's readers through the page cache have another value, and so another size, than the stored one.
  func hasOutdatedReaders(_ node: Node) -> Bool {
    cachedReaders.withLock { $0[node.number]?.first }?.handle.isOutdated ?? false
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
    Background.run(after: Self.patienceWithReaders) { [self] in giveUp(wait, once) }
  }

  /// The same on `queue`, where what is waited for first is called first.
  func whenUnreadInTurn(_ node: Node, _ body: @escaping @Sendable () -> Void) {
    let turn = Turn()
    let once: @Sendable () -> Void = { if turn.take() { body() } }
    let later: @Sendable () -> Void = { [queue] in queue.async(execute: once) }
    guard let wait = pages.withLock({ $0.wait(for: node.number, later) }) else { return once() }
    queue.asyncAfter(deadline: .now() + Self.patienceWithReaders) { [self] in giveUp(wait, once) }
  }

  private func giveUp(_ wait: PageCache.Wait, _ action: () -> Void) {
    pages.withLock { $0.giveUp(wait) }
    action()
  }
}

/// Something that is done once, by the first caller.
private final class Turn: Sendable {
  private let isTaken = Atomic(false)

  func take() -> Bool { !isTaken.exchange(true, ordering: .acquiringAndReleasing) }
}
