import Model
import Notifier
import Platform
import Prompting
import Store
import Synchronization
import Views

/// Notifies the user, by the notifications of the desktop, of a link to a view of which a file has taken the place.
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
  private let notify: @Sendable (_ link: String, _ view: String) -> Void
  private let state = Mutex(State())
  private let following = Mutex<Task<Void, Never>?>(nil)

  /// Begins at once. `notify`: shows it.
  init(
    _ views: Views, _ changes: AsyncStream<Change>,
    notify: @escaping @Sendable (String, String) -> Void = DesktopNotification.showReplacedLink
  ) {
    (self.views, self.notify) = (views, notify)
    refresh()
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

  /// Takes over which links there are.
  private func refresh() {
    // Of a vault that was never unlocked they are not known.
    guard let all = try? views.all() else { return }
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
