import Dispatch
public import Fuse
public import Model
import Platform
import Store
import Synchronization
import Tree

extension TreeFileSystem {
  /// Whom to tell what the kernel must no longer believe; before that, it believes nothing.
  public func connect(_ notifier: CacheInvalidator) {
    kernel.withLock { $0 = notifier }
  }

  /// Takes what the stores hold now as known; what differs later is a change.
  public func beginFollowing() {
    tree.beginFollowing()
  }

  /// Logs every change, and notifies the kernel of those from outside, until the stream ends.
  public func follow(_ changes: AsyncStream<Change>) async {
    for await change in changes {
      if change.kind == .locked {
        tree.forgetLocked()
        dropPages(of: tree.openSecrets)
      }
      tree.record(change)
      let replays = tree.replays(of: change)
      guard change.origin == .external else { continue }
      let names = tree.staleNames(after: change)
      tellKernel { notifier in
        for name in names { notifier.forget(name) }
      }
      add(replays)
    }
  }

  /// Returns when everything that was asked for before the mount went is done.
  public func finish() {
    commits.wait()
    waiting.finish()
  }

  /// On a queue of its own, never inside a request: the kernel waits for locks that the request's caller
  /// may hold.
  func tellKernel(_ news: @escaping @Sendable (CacheInvalidator) -> Void) {
    guard let notifier = kernel.withLock({ $0 }) else { return }
    Self.news.async { news(notifier) }
  }

  static let news = DispatchQueue(label: "keyhole.news")

  /// Has the kernel drop what it holds of secrets for those who mapped them. Not on the queue of the news: it waits for
  /// pages that are being read.
  func dropPages(of nodes: [Node]) {
    guard !nodes.isEmpty, let notifier = kernel.withLock({ $0 }) else { return }
    Self.pages.async {
      for node in nodes { notifier.invalidateNode(NodeID(rawValue: node.number)) }
    }
  }

  private static let pages = DispatchQueue(label: "keyhole.pages")
}

extension CacheInvalidator {
  /// Drops the status of a file and its directory. Its pages go at the next open, if it has another value.
  func forget(_ name: StaleName) {
    if let node = name.node { invalidateAttributes(of: NodeID(rawValue: node.number)) }
    invalidateAttributes(of: NodeID(rawValue: name.directory.number))
  }
}
