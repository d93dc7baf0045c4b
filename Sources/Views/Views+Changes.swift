public import Model
import Store
import Synchronization

// A change of an item is a change of the views of it.
extension Views {
  /// The views that a change of the stores changes, each once for each state. To be called for every change in turn.
  public func viewsChanged(by change: Change) -> [View] {
    guard areSupported, change.kind != .attributes || change.subject.isDocument else { return [] }
    switch change.subject {
    case .document(let id, _):
      // It is reported by itself.
      if let view = try? keychain.document(id).flatMap({ View($0) }), let basis = try? basis(of: view) {
        known.withLock { known in
          known[id, default: Known()].announced = basis
          known[id]?.documentChange = view.document.modified
        }
      } else {
        known.withLock { $0[id] = nil }
      }
      return []
    case .item(_, let identity):
      var sources: Set<String> = [paths.path(of: .item(identity))]
      if case .item(_, let old)? = change.previous { sources.insert(paths.path(of: .item(old))) }
      return news(of: sources)
    case .key(let suite, let key):
      var sources: Set<String> = [paths.path(of: .setting(suite: suite, key: key))]
      if case .key(let suite, let key)? = change.previous {
        sources.insert(paths.path(of: .setting(suite: suite, key: key)))
      }
      return news(of: sources)
    case .suite, .otpauth, .keychain, .everything: return []
    }
  }

  /// Takes the views as they are for known: what differs later is a change. Of a locked vault there are none.
  public func beginFollowing() {
    guard areSupported, let views = try? all() else { return }
    for view in views {
      guard let basis = try? basis(of: view) else { continue }
      known.withLock { known in
        guard known[view.document.id]?.announced == nil else { return }
        known[view.document.id, default: Known()].announced = basis
        known[view.document.id]?.documentChange = view.document.modified
      }
    }
  }

  /// The views whose lengths may be known after a change: those that it changes, and all after an unlock.
  public func viewsToMeasure(after change: Change, _ changed: [View]) -> [View] {
    switch change.subject {
    case .keychain where change.kind == .unlocked: (try? all()) ?? []
    case .document(let id, _): (try? keychain.document(id).flatMap { View($0) }).map { [$0] } ?? []
    default: changed
    }
  }

  private func news(of sources: Set<String>) -> [View] {
    guard let views = try? all() else { return [] }
    return views.filter { view in
      guard view.references.contains(where: sources.contains), let basis = try? basis(of: view) else {
        return false
      }
      return known.withLock { known in
        if let writes = known[view.document.id]?.writes, writes > 0 { return false }
        // The document was written with its items, and its own change comes after theirs.
        let last = known[view.document.id]?.documentChange
        if let last, last != view.document.modified { return false }
        let isNew = known[view.document.id]?.announced != basis
        known[view.document.id, default: Known()].announced = basis
        return isNew
      }
    }
  }
}

extension Change.Subject {
  fileprivate var isDocument: Bool {
    if case .document = self { true } else { false }
  }
}
