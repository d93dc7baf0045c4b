import Dispatch
import Fuse
import Platform
import Store
import Synchronization
import Tree

/// The kernel's cache of a mount: the names, attributes and pages that it may keep, and when it has to drop them.
///
/// **Kept.** A name, for a second. The attributes of a file, for a day, if only a change that is reported to
/// this process can change them: not those of a directory, a secret or scratch, and not while the file is being written or
/// a reader has another value than the stored one. The pages of a setting, while every open handle reads the same value
/// (``PageCache``). Those of a secret never, but for a program that maps the file.
///
/// **Dropped.**
/// 1. Attributes, before an open is answered that serves another value than they are of (``CachedAttributes``). So no read
///    ends at the size of another value, even where another program's change has not been reported yet. An open that goes
///    past the page cache waits for those who read through it, but for 10 ms at most: the drop would end their reads.
/// 2. Attributes, before setxattr(2) of a key's type is answered: the same value has another text. Not where they are of the
///    stored text already.
/// 3. Attributes of the file and its directory, after a reported change of another program, and after a creation that is
///    given up. Those of the file not where they are of the stored value already, and not while it is read through the
///    page cache, but for 10 ms at most: a read that is asking for the attributes would end at the size of the older value.
/// 4. Pages of a setting, by the open that serves another value: it does not let the kernel keep them.
/// 5. Pages of a secret, when the mapping program closes the file, and when the keychain is locked.
///
/// A reply to a lookup, or with attributes, whose size is not that of the file's readers through the page cache, as that of a newer value, or of one that its caller has written
/// and not closed, waits until they are closed, but for 10 ms at most: the kernel takes over the size, and a read under way would end there.
///
/// Names are never dropped before their second is over: for that the kernel takes the directory's lock, and a process that
/// is killed while it waits for it would never be gone. One that uses a name that was removed elsewhere gets ESTALE, and
/// then the kernel looks it up again.
///
/// **Forgotten.** What was not looked up for a minute or two, after many lookups, and is not in use: so that a listing of many
/// files does not take memory for as long as the mount lives. Names, attributes and pages go with the file, which
/// keeps its number. Linux has that since 6.18; before, it forgets files when it needs memory.
///
/// **Order.** 1 and 2 happen inside the request, as the kernel takes no lock for them. 3 is done on `queue`, for each file in
/// the order of its changes, and the replay of a modification for watchers follows on the same queue, so watchers find the
/// new attributes.
/// 5 and the forgetting are done on a queue of their own and never inside a request: the kernel waits for pages that are
/// being read.
final class KernelCache: Sendable {
  /// In seconds.
  static let attributesTimeout: Double = 86_400
  /// In seconds.
  static let nameTimeout: Double = 1

  let tree: FileTree
  let userID = User.real
  let groupID = User.realGroup
  /// For what is done after a change, in turn: dropping attributes, and the replay.
  let queue = DispatchQueue(label: "keyhole.invalidation")
  private let queueOfPages = DispatchQueue(label: "keyhole.pages")
  private let invalidator = Mutex<CacheInvalidator?>(nil)
  let pages = Mutex(PageCache())
  let cachedAttributes = Mutex(CachedAttributes())
  let pruning = PruningSchedule()
  let release = MemoryRelease()
  /// The files that are read through the kernel's page cache.
  let cachedReaders = Mutex<[UInt64: [OpenFile]]>([:])

  init(_ tree: FileTree) {
    self.tree = tree
  }

  /// Sets the session whose kernel cache is dropped from. Before that, the kernel caches nothing.
  func connect(_ invalidator: CacheInvalidator) {
    self.invalidator.withLock { $0 = invalidator }
  }

  /// Drops a file's attributes in the kernel, after `open` or `beginDrop`.
  func dropAttributes(of node: Node) {
    let error = invalidator.withLock { $0 }?.invalidateAttributes(of: NodeID(rawValue: node.number))
    // A reply that makes it known may be under way. One is, or it was forgotten, and all that was cached with it.
    let isKnown = error != .ENOENT || !isKnown(node)
    cachedAttributes.withLock { $0.endDrop(node.number, isKnown: isKnown) }
  }

  /// Drops the attributes of files that changed, and of their directories: rule 3.
  func invalidate(_ names: [StaleName]) {
    guard !names.isEmpty, let invalidator = invalidator.withLock({ $0 }) else { return }
    queue.async {
      for name in names {
        if let node = name.node { self.drop(node, invalidator) }
        invalidator.invalidateAttributes(of: NodeID(rawValue: name.directory.number))
      }
    }
  }

  private func drop(_ node: Node, _ invalidator: CacheInvalidator) {
    guard !node.isDirectory else {
      invalidator.invalidateAttributes(of: NodeID(rawValue: node.number))
      return
    }
    guard beginDrop(of: node, unlessOf: tree.storedVersion(of: node)) else { return }
    guard isRead(node) else { return dropAttributes(of: node) }
    // The replay of the change waits in the same way, after this.
    whenUnreadInTurn(node) { [self] in dropAttributes(of: node) }
  }

  /// Drops the pages of secrets: rule 5. On a queue of its own, as it waits for pages that are being read.
  func dropPages(of nodes: [Node]) {
    guard !nodes.isEmpty, let invalidator = invalidator.withLock({ $0 }) else { return }
    queueOfPages.async {
      for node in nodes { invalidator.invalidateNode(NodeID(rawValue: node.number)) }
    }
  }

  /// Has the kernel forget files that are not in use.
  func prune(_ nodes: [NodeID]) {
    guard !nodes.isEmpty, let invalidator = invalidator.withLock({ $0 }) else { return }
    queueOfPages.async { [pruning, release] in
      if invalidator.prune(nodes) == .EINVAL { pruning.isImpossible.store(true, ordering: .relaxed) }
      // The nodes go with the FORGETs that have been sent.
      release.plan()
    }
  }
}
