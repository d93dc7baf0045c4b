import Dispatch
import Fuse
import Glibc
import Model
import Platform
import Store
import Synchronization
import Tree

/// The changes that are being replayed for watchers of the mount.
struct Replays: Sendable {
  var queue = ReplayQueue()
  var current: Replay?
  var performer: (any ReplayPerformer)?
  /// Whether the next one is being looked for or performed.
  var isBusy = false
  /// How many do not want any performed now, and who of them still waits for the present one.
  var resting = 0
  var waiting: [@Sendable () -> Void] = []
}

extension Replays {
  /// Whether the caller has to begin to perform them.
  mutating func begins() -> Bool {
    guard resting == 0, !isBusy else { return false }
    isBusy = true
    return true
  }
}

extension FileHandle {
  /// That of an replay: nothing stands behind it.
  static let replay = FileHandle(rawValue: 0)
}

/// Something that is done once, by the first caller.
private final class Turn: Sendable {
  private let isTaken = Atomic(false)

  func take() -> Bool { !isTaken.exchange(true, ordering: .acquiringAndReleasing) }
}

// The performer's operations are answered without a look at the store: what they do has happened already.
extension TreeFileSystem {
  /// From now on `performer` tells those who watch the mount what happened elsewhere.
  public func replay(through performer: any ReplayPerformer) {
    replays.withLock { $0.performer = performer }
  }

  func add(_ new: [Replay]) {
    let isFirst = replays.withLock { replays in
      guard replays.performer != nil, !new.isEmpty else { return false }
      for replay in new { replays.queue.add(replay) }
      return replays.begins()
    }
    if isFirst { Self.news.async { self.performNext() } }
  }

  /// Performs none until ``resumeEchoes()``, as each uses the mount, which then can't be unmounted; calls `body` when
  /// none is under way any more.
  public func restEchoes(_ body: @escaping @Sendable () -> Void) {
    let isResting = replays.withLock { replays in
      replays.resting += 1
      if replays.isBusy { replays.waiting.append(body) }
      return !replays.isBusy
    }
    if isResting { body() }
  }

  /// To be called once for each ``restEchoes(_:)``.
  public func resumeEchoes() {
    let isFirst = replays.withLock { replays in
      replays.resting -= 1
      return replays.begins()
    }
    if isFirst { Self.news.async { self.performNext() } }
  }

  private func performNext() {
    while let (replay, performer) = takeNext() {
      guard isVisible(replay), tree.isTrue(replay) else { continue }
      return whenUnread(replay) { [self] in
        performer.perform(replay) { [self] in
          replays.withLock { $0.current = nil }
          Self.news.async { self.performNext() }
        }
      }
    }
  }

  private func takeNext() -> (Replay, any ReplayPerformer)? {
    let (next, waiting) = replays.withLock { replays in
      replays.current = replays.resting == 0 ? replays.queue.next() : nil
      guard let replay = replays.current, let performer = replays.performer else {
        replays.isBusy = false
        defer { replays.waiting = [] }
        return (nil as (Replay, any ReplayPerformer)?, replays.waiting)
      }
      return ((replay, performer), [])
    }
    for body in waiting { body() }
    return next
  }

  /// A directory that the kernel does not know can't be watched.
  private func isVisible(_ replay: Replay) -> Bool {
    guard let directory = tree.directory(of: replay) else { return false }
    return directory === tree.root || lookups.withLock { $0[directory.number] != nil }
  }

  /// A change of the file's size would end a read through the cache that is under way; so it waits a moment.
  private func whenUnread(_ replay: Replay, _ body: @escaping @Sendable () -> Void) {
    let number = tree.node(of: replay).number
    guard replay.kind == .modification, pages.withLock({ $0.isRead(number) }) else { return body() }
    let turn = Turn()
    let once: @Sendable () -> Void = { if turn.take() { Self.news.async { body() } } }
    guard pages.withLock({ $0.wait(for: number, once) }) else { return once() }
    Background.run(after: Self.patienceWithReaders, once)
  }
}

// MARK: - Answers to the performer

extension TreeFileSystem {
  /// The replay that a request belongs to; nil: it belongs to none. Numbers of threads can't be imitated.
  func replay(behind request: Request) -> Replay? {
    guard request.threadID != 0 else { return nil }
    return replays.withLock { replays in
      guard let current = replays.current, replays.performer?.thread == request.threadID else { return nil }
      return current
    }
  }

  /// A created name is not there yet, and a deleted one is still there.
  func lookup(_ name: [UInt8], in parent: NodeID, for replay: Replay, _ reply: consuming EntryReply) {
    do throws(StoreError) {
      let directory = try node(parent)
      guard let child = tree.node(named: name, in: directory, onTheWayTo: replay) else { throw .notFound }
      let isTarget = child === tree.node(of: replay)
      guard !(isTarget && replay.kind == .creation) else { throw .notFound }
      answer(reply, child)
    } catch {
      reply.fail(Errno(error))
    }
  }

  func answer(_ reply: consuming EntryReply, _ node: Node) {
    let entry = (try? entry(of: node, for: Caller(thread: 0))) ?? tombstoneEntry(of: node)
    if !reply.succeed(entry) { forget(entry.node, lookups: 1) }
  }

  func remove(_ replay: Replay, _ reply: consuming EmptyReply) {
    tree.giveUpName(of: replay)
    reply.succeed()
  }

  /// The entry of a name that is gone: enough to delete it.
  private func tombstoneEntry(of node: Node) -> Entry {
    lookups.withLock { $0[node.number, default: 0] += 1 }
    let attributes = Fuse.Attributes(
      inode: node.number, kind: node.isDirectory ? .directory : .file,
      permissions: node.isDirectory ? 0o700 : 0o600, linkCount: node.isDirectory ? 2 : 1, userID: userID,
      groupID: groupID)
    return Entry(
      node: NodeID(rawValue: node.number), attributes: attributes, attributesTimeout: 0, entryTimeout: 0)
  }
}
