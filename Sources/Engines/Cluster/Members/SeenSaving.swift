import Dispatch
import Platform
import Synchronization

/// Stores what was seen a second after it has changed: after a crash, what was seen in that second is forgotten.
final class SeenSaving: Sendable {
  private static let delay = DispatchTimeInterval.seconds(1)

  private let path: String
  private let store = Mutex<Weak>(Weak())

  private struct Weak: Sendable {
    weak var store: ClusterStore?
  }

  init(_ path: String) { self.path = path }

  func setStore(_ new: ClusterStore) { store.withLock { $0.store = new } }

  func save() {
    Background.run(after: Self.delay) { [self] in
      guard let store = store.withLock({ $0.store }) else { return }
      store.updateOffline()
      // Locked: it is stored after the next unlock.
      try? store.saveSeen()
    }
  }
}
