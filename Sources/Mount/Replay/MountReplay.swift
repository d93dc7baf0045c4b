import Dispatch
import Fuse
import Model
import Notifier
import Platform
import Store
import Tree

/// The replay of other programs' changes on this mount, so that inotify(7) watchers see them.
///
/// A performer makes the change again through the mount's path. Its requests are known by their thread, and are answered
/// without the store: what they ask for has happened already.
struct MountReplay: Sendable {
  private let tree: FileTree
  private let cache: KernelCache
  let schedule: ReplaySchedule<ReplayPlace>

  init(_ tree: FileTree, _ cache: KernelCache) {
    self.tree = tree
    self.cache = cache
    schedule = ReplaySchedule(on: cache.queue) { replay, start in
      // A file that the kernel does not know can't be watched. Of a watched one it may have forgotten the directory.
      let watchable = [tree.directory(of: replay), tree.knownNode(of: replay)].compactMap { $0 }
      guard watchable.contains(where: cache.isKnown), tree.isTrue(replay) else { return false }
      let node = tree.node(of: replay)
      if replay.kind == .modification {
        cache.whenUnreadInTurn(node, start)
      } else {
        start()
      }
      return true
    }
  }

  /// Whether a request belongs to a replay, for requests that are many: a replay is large, also where it is none.
  func includes(_ request: Request) -> Bool { schedule.isReplaying(request.threadID) }

  /// The replay that a request belongs to; nil: it belongs to none.
  func current(for request: Request) -> TreeReplay? { schedule.replay(of: request.threadID) }

  /// LOOKUP: a created name is not there yet, and a deleted one is still there.
  func lookup(_ name: [UInt8], in parent: NodeID, for replay: TreeReplay, _ reply: consuming EntryReply) {
    guard let directory = tree.node(parent.rawValue),
      let child = tree.node(named: name, in: directory, onTheWayTo: replay),
      replay.kind != .creation || child.number != tree.node(of: replay).number
    else { return _ = reply.fail(.ENOENT) }
    answer(reply, (try? cache.entry(of: child, for: Caller(thread: 0))) ?? cache.tombstoneEntry(of: child))
  }

  /// MKNOD and MKDIR: the node that is there already.
  func create(_ replay: TreeReplay, _ reply: consuming EntryReply) {
    let node = tree.node(of: replay)
    answer(reply, (try? cache.newEntry(of: node, for: Caller(thread: 0))) ?? cache.tombstoneEntry(of: node))
  }

  /// UNLINK and RMDIR.
  func remove(_ replay: TreeReplay, _ reply: consuming EmptyReply) {
    tree.giveUpName(of: replay)
    reply.succeed()
  }

  /// OPEN: the next reader drops the cached pages if they are of another value.
  func open(_ reply: consuming OpenReply) {
    reply.succeed(.replay, options: [.directIO, .keepCache, .noFlush])
  }

  private func answer(_ reply: consuming EntryReply, _ entry: Entry) {
    if !reply.succeed(entry) { cache.forget(entry.node, lookups: 1) }
  }
}

extension FileHandle {
  /// That of a replay: no open file belongs to it.
  static let replay = FileHandle(rawValue: 0)
}
