import Model
import Notifier
package import Platform
import Prompting
import Store
import Tree
import Views

/// Follows changes of the values of a program.
package final class ValueWatch: Sendable {
  /// Readable after a change of a value.
  package let news: WakePipe
  private let stores: StoreWatch
  private let following: Task<Void, Never>

  /// Begins to follow: to be made before the values are fetched, so that no later change is missed.
  ///
  /// - Throws: `Errno`.
  package init(_ values: ProgramValues) throws {
    let news = try WakePipe()
    let session = values.session
    let changes = session.stores.feed.watch()
    stores = StoreWatch(session.stores, try StoragePaths.ofMount())
    session.tree.beginFollowing()
    for problem in stores.problems { StandardError.write("keyhole: \(problem.escapedForTerminal)\n") }
    let paths = values.watched
    let views = paths.contains(where: \.isView) ? session.tree.views : nil
    following = Task(executorPreference: Background.tasks) {
      for await change in changes {
        // A change of an item is one of the views of it.
        let changed = (views?.viewsChanged(by: change) ?? []).map { TreePath("views/" + $0.name.string) }
        if ChangeEvent(change).changes(paths) || changed.contains(where: paths.contains) { news.wake() }
      }
    }
    self.news = news
  }

  deinit { following.cancel() }
}

extension ChangeEvent {
  /// Whether it is a change of a value at one of these paths, or below one.
  func changes(_ paths: [TreePath]) -> Bool {
    switch kind {
    case .created, .modified, .deleted, .moved, .overflow: break
    default: return false
    }
    // A code that was given out changes what the next one is computed from.
    guard !path.hasSuffix("/" + ItemSecrets.otpauthName) else { return paths.contains { $0.string == path } }
    return paths.contains(where: concerns)
  }
}
