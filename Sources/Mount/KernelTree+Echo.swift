import Dispatch
import Fuse
import Glibc
import Model
import Store
import Synchronization
import Tree

/// The changes that are being replayed for watchers of the mount.
struct Echoes: Sendable {
  var queue = EchoQueue()
  var current: Echo?
  var performer: (any EchoPerformer)?
  /// Whether the next one is being looked for or performed.
  var isBusy = false
  /// How many do not want any performed now, and who of them still waits for the present one.
  var resting = 0
  var waiting: [@Sendable () -> Void] = []
}

extension Echoes {
  /// Whether the caller has to begin to perform them.
  mutating func begins() -> Bool {
    guard resting == 0, !isBusy else { return false }
    isBusy = true
    return true
  }
}

extension FileHandle {
  /// That of an echo: nothing stands behind it.
  static let echo = FileHandle(rawValue: 0)
}

/// Something that is done once, by the first caller.
private final class Turn: Sendable {
  private let isTaken = Atomic(false)

  func take() -> Bool { !isTaken.exchange(true, ordering: .acquiringAndReleasing) }
}

// The performer's operations are answered without a look at the store: what they do has happened already.
extension KernelTree {
  /// From now on `performer` tells those who watch the mount what happened elsewhere.
  public func echo(through performer: any EchoPerformer) {
    echoes.withLock { $0.performer = performer }
  }

  func add(_ new: [Echo]) {
    let isFirst = echoes.withLock { echoes in
      guard echoes.performer != nil, !new.isEmpty else { return false }
      for echo in new { echoes.queue.add(echo) }
      return echoes.begins()
    }
    if isFirst { Self.news.async { self.performNext() } }
  }

  /// Performs none until ``resumeEchoes()``, as each uses the mount, which then can't be unmounted; calls `body` when
  /// none is under way any more.
  public func restEchoes(_ body: @escaping @Sendable () -> Void) {
    let isResting = echoes.withLock { echoes in
      echoes.resting += 1
      if echoes.isBusy { echoes.waiting.append(body) }
      return !echoes.isBusy
    }
    if isResting { body() }
  }

  /// To be called once for each ``restEchoes(_:)``.
  public func resumeEchoes() {
    let isFirst = echoes.withLock { echoes in
      echoes.resting -= 1
      return echoes.begins()
    }
    if isFirst { Self.news.async { self.performNext() } }
  }

  private func performNext() {
    while let (echo, performer) = takeNext() {
      guard isVisible(echo), tree.isTrue(echo) else { continue }
      return whenUnread(echo) { [self] in
        performer.perform(echo) { [self] in
          echoes.withLock { $0.current = nil }
          Self.news.async { self.performNext() }
        }
      }
    }
  }

  private func takeNext() -> (Echo, any EchoPerformer)? {
    let (next, waiting) = echoes.withLock { echoes in
      echoes.current = echoes.resting == 0 ? echoes.queue.next() : nil
      guard let echo = echoes.current, let performer = echoes.performer else {
        echoes.isBusy = false
        defer { echoes.waiting = [] }
        return (nil as (Echo, any EchoPerformer)?, echoes.waiting)
      }
      return ((echo, performer), [])
    }
    for body in waiting { body() }
    return next
  }

  /// A directory that the kernel does not know can't be watched.
  private func isVisible(_ echo: Echo) -> Bool {
    guard let directory = tree.directory(of: echo) else { return false }
    return directory === tree.root || lookups.withLock { $0[directory.number] != nil }
  }

  /// A change of the file's size would end a read through the cache that is under way; so it waits a moment.
  private func whenUnread(_ echo: Echo, _ body: @escaping @Sendable () -> Void) {
    let number = tree.node(of: echo).number
    guard echo.kind == .modification, pages.withLock({ $0.isRead(number) }) else { return body() }
    let turn = Turn()
    let once: @Sendable () -> Void = { if turn.take() { Self.news.async { body() } } }
    guard pages.withLock({ $0.wait(for: number, once) }) else { return once() }
    Background.run(after: Self.patienceWithReaders, once)
  }
}

// MARK: - Answers to the performer

extension KernelTree {
  /// The echo that a request belongs to; nil: it belongs to none. Numbers of threads can't be imitated.
  func echo(behind request: Request) -> Echo? {
    guard request.threadID != 0 else { return nil }
    return echoes.withLock { echoes in
      guard let current = echoes.current, echoes.performer?.thread == request.threadID else { return nil }
      return current
    }
  }

  /// A created name is not there yet, and a deleted one is still there.
  func lookup(_ name: [UInt8], in parent: NodeID, for echo: Echo, _ reply: consuming EntryReply) {
    do throws(StoreError) {
      let directory = try node(parent)
      guard let child = tree.node(named: name, in: directory, onTheWayTo: echo) else { throw .notFound }
      let isTarget = child === tree.node(of: echo)
      guard !(isTarget && echo.kind == .creation) else { throw .notFound }
      answer(reply, child)
    } catch {
      reply.fail(Errno(error))
    }
  }

  func answer(_ reply: consuming EntryReply, _ node: Node) {
    let entry = (try? entry(of: node, for: Caller(thread: 0))) ?? ghost(of: node)
    if !reply.succeed(entry) { forget(entry.node, lookups: 1) }
  }

  func remove(_ echo: Echo, _ reply: consuming EmptyReply) {
    tree.giveUpName(of: echo)
    reply.succeed()
  }

  /// The entry of a name that is gone: enough to delete it.
  private func ghost(of node: Node) -> Entry {
    lookups.withLock { $0[node.number, default: 0] += 1 }
    let attributes = Fuse.Attributes(
      inode: node.number, kind: node.isDirectory ? .directory : .file,
      permissions: node.isDirectory ? 0o700 : 0o600, linkCount: node.isDirectory ? 2 : 1, userID: userID,
      groupID: groupID)
    return Entry(
      node: NodeID(rawValue: node.number), attributes: attributes, attributesTimeout: 0, entryTimeout: 0)
  }
}
