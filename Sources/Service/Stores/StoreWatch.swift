import KeychainSelection
import Model
import Notifier
import Platform
import Store
import Suites
import Synchronization

/// Looks at the stores again whenever something outside may have changed them.
package final class StoreWatch: Sendable {
  private let watches: [(folder: String, watch: FolderWatch)]
  private let remote: Task<Void, Never>?

  /// Folders that are missing are not made: they are watched from when they come. A cluster tells of changes by itself.
  package init(_ stores: Stores, _ places: StoragePaths) {
    guard !stores.hasRemoteSettings else {
      (watches, remote) = Self.vault(stores.keychain, places)
      return
    }
    let settings = stores.settings
    let suites = FolderWatch(places.configuration, followingLinks: Self.ending) { news in
      switch news {
      case .everything: settings.refreshAll()
      case .files(let names):
        for suite in Set(names.compactMap(PropertyListFolder.suite)) { settings.refresh(suite) }
      }
    }
    let keychain = Self.vault(stores.keychain, places)
    watches = [(places.configuration, suites)] + keychain.watches
    remote = keychain.remote
  }

  private static func vault(
    _ keychain: KeychainStore?, _ places: StoragePaths
  ) -> (watches: [(folder: String, watch: FolderWatch)], remote: Task<Void, Never>?) {
    guard let keychain else { return ([], nil) }
    if let served = keychain.engine.remote {
      let task = Task(executorPreference: Background.tasks) {
        for await _ in served.news { try? keychain.refresh() }
      }
      return ([], task)
    }
    guard keychain.engine.name != KeychainChoice.cluster.rawValue else { return ([], nil) }
    let vault = FolderWatch(places.vault, .commits) { _ in try? keychain.refresh() }
    return ([(places.vault, vault)], nil)
  }

  deinit { remote?.cancel() }

  private static let ending = ".plist"

  /// Folders that the kernel does not watch, and why.
  package var problems: [String] {
    watches.compactMap { folder, watch in
      watch.failure.map { failure in
        "\(folder) is looked at once a second only: \(Self.reason(failure))"
      }
    }
  }

  private static func reason(_ failure: Int32) -> String {
    switch Errno(rawValue: failure) {
    case .ENOSPC: "too many watches; fs.inotify.max_user_watches is the limit"
    case .EMFILE: "too many watchers; fs.inotify.max_user_instances is the limit"
    default: systemMessage(failure)
    }
  }
}
