import Dispatch
public import Fuse
package import Model
public import Notifier
package import Store
import Synchronization
import Tree

// Changes of the stores.
extension TreeFileSystem {
  /// Connects the session that has the kernel drop cached attributes and pages. Before that, the kernel caches nothing.
  public func connect(_ invalidator: CacheInvalidator) {
    cache.connect(invalidator)
  }

  /// Gives memory that was freed back to the system in some seconds: what the start, or reading all items, has taken.
  public func planMemoryRelease() { cache.release.plan() }

  /// Takes what the stores hold now as known; what differs later is a change.
  public func beginFollowing() {
    tree.beginFollowing()
  }

  /// Has other programs' changes replayed by `performer` for watchers of the mount, from now on.
  public func replay(through performer: any ReplayPerformer) {
    replay.schedule.start(performer)
  }

  /// Performs no replay until ``resumeReplay()``, as each uses the mount, which then can't be unmounted; calls `body` once
  /// when none is under way any more.
  public func pauseReplay(_ body: @escaping @Sendable () -> Void) {
    replay.schedule.pause(body)
  }

  /// To be called once for each ``pauseReplay(_:)``.
  public func resumeReplay() {
    replay.schedule.resume()
  }

  /// Logs every change, and has the kernel drop what those of other programs have made wrong, until the stream ends.
  ///
  /// `progress`: of the stream, for `whenShown`.
  package func follow(_ changes: AsyncStream<Change>, _ progress: ChangeProgress? = nil) async {
    self.progress.withLock { $0 = progress }
    for await change in changes {
      if change.kind == .locked {
        tree.forgetLocked()
        cache.dropPages(of: tree.openSecrets)
      }
      report(change)
      // A change of an item is one of the views of it.
      for view in tree.changesOfViews(after: change) { report(view) }
    }
  }

  /// Calls `body` when every change that the stores have found until now is shown: what the kernel has of it is dropped.
  package func whenShown(_ body: @escaping @Sendable () -> Void) {
    guard let progress = progress.withLock({ $0 }) else { return body() }
    progress.whenHandled { [cache] in cache.queue.async(execute: body) }
  }

  private func report(_ change: Change) {
    tree.record(change)
    refusals.follow(change)
    let replays = tree.replays(of: change)
    guard change.origin != .local else { return }
    cache.invalidate(tree.staleNames(after: change))
    replay.schedule.add(replays)
  }
}
