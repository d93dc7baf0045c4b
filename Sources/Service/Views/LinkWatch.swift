import Model
import Notifier
import Platform
import Prompting
import Store
import Synchronization
import Views

/// Notifies the user, by the notifications of the desktop, of a link to a view of which a file has taken the place. A link that leads to
/// the former name of a view, in the same mount, is changed to the present one.
final class LinkWatch: Sendable {
  private struct State {
    /// The views of the links, by the links' paths.
    var views: [String: String] = [:]
    /// By the folders of the links.
    var watches: [String: FolderWatch] = [:]
    /// The links that were reported, until they are links again.
    var reported: Set<String> = []
  }

  private let views: Views
  private let mountPoint: String
  private let notify: @Sendable (_ link: String, _ view: String) -> Void
  private let state = Mutex(State())
  private let following = Mutex<Task<Void, Never>?>(nil)
  private let turn = Mutex(())

  /// Begins at once, and returns without waiting for it. `mountPoint`: where the views are; `notify`: shows it.
  init(
    _ views: Views, at mountPoint: String, _ changes: AsyncStream<Change>,
    notify: @escaping @Sendable (String, String) -> Void = DesktopNotification.showReplacedLink
  ) {
    (self.views, self.mountPoint, self.notify) = (views, mountPoint, notify)
    // To know the views, all items have to be read, for which a mount does not wait.
    Background.run { [weak self] in self?.refresh() }
    let task = Task(executorPreference: Background.tasks) { [weak self] in
      for await change in changes {
        switch change.subject {
        case .document, .keychain, .everything: self?.refresh()
        default: continue
        }
      }
    }
    following.withLock { $0 = task }
  }

  func end() { following.withLock { $0.take() }?.cancel() }

  /// Takes over which links there are. Waits until all items are read.
  func refresh() {
    turn.withLock { _ in takeOver() }
  }

  private func takeOver() {
    // Of a vault that was never unlocked they are not known.
    guard let all = try? views.all() else { return }
    follow(all)
    let pairs = all.flatMap { view in view.links.map { ($0, view.name.string) } }
    let links = Dictionary(pairs) { first, _ in first }
    let folders = Set(links.keys.map { Files.folder(of: $0) })
    let missing = state.withLock { state in
      state.views = links
      state.watches = state.watches.filter { folders.contains($0.key) }
      return folders.subtracting(state.watches.keys)
    }
    for folder in missing {
      let watch = FolderWatch(folder, .wholeFiles) { [weak self] _ in self?.look() }
      state.withLock { $0.watches[folder] = watch }
    }
    look()
  }

  /// Has the links of renamed views lead to their present names. What can't be changed `keyhole doctor` names.
  private func follow(_ all: [View]) {
    let names = Set(all.map(\.name.string))
    let paths = all.flatMap(\.links)
    // A path that two views remember says nothing of either: the link could lead to the values of another view.
    let ambiguous = Set(Dictionary(grouping: paths) { $0 }.filter { $0.value.count > 1 }.keys)
    for view in all {
      for link in view.links.filter({ !ambiguous.contains($0) }).map({ ViewLink(path: $0) }) {
        guard case .leadsTo(let old) = link.state(of: view.name.string), !names.contains(old) else {
          continue
        }
        let folder = mountPoint + "/views/"
        try? link.change(from: folder + old, to: folder + view.name.string)
      }
    }
  }

  private func look() {
    for (link, view) in state.withLock({ $0.views }) {
      let status = try? Files.status(link, followingLinks: false)
      let isReplaced = status.map { !$0.isLink } ?? false
      let isNews = state.withLock { state in
        if isReplaced { return state.reported.insert(link).inserted }
        state.reported.remove(link)
        return false
      }
      if isNews { notify(link, view) }
    }
  }
}
