import Control
import InMemory
import Model
import Notifier
import Platform
import Store
import Suites
package import WrapperCore

/// Where suites are kept.
///
/// Wrappers use `.user`, or under a test runner a store in memory that only this process has, so that tests
/// don't use the user's settings. `KEYHOLE_STORE=user` or `=memory` in the environment sets it for a process,
/// `SuiteStorage.$current.withValue(…)` for the wrappers that are made inside.
public struct SuiteStorage: Sendable {
  package let live: LiveSettings

  /// The storage for wrappers that are made in this task; nil: that of the process.
  @TaskLocal public static var current: SuiteStorage?

  /// The user's suites: `$XDG_CONFIG_HOME/*.plist`, by default in `~/.config`, of which inotify(7) reports changes by others; or those of the
  /// running mount where they are a cluster's, by its control socket. `keyhole get` has the same.
  ///
  /// Where such a mount was not unlocked yet, or is gone, values stay as they were last, and a change throws `locked` or `unreachable`; the next mount
  /// brings its own. A program that has met no mount yet has the property lists.
  public static let user: SuiteStorage = {
    guard let folders = UserFolders.current() else {
      Log.note("settings", "there is no home folder; they are kept in memory. Set HOME")
      return .memory()
    }
    return SuiteStorage(configuration: folders.configuration, state: folders.state, runtime: folders.runtime)
  }()

  /// A new, empty store in memory. It exists as long as a wrapper or a copy of this value uses it.
  public static func memory() -> SuiteStorage {
    SuiteStorage(live: LiveSettings(SettingsStore(engine: MemorySuites())))
  }

  /// The suites in a folder, which processes that name the same folder share.
  public static func folder(_ path: String) -> SuiteStorage {
    SuiteStorage(configuration: path, state: path + "/.keyhole")
  }

  private static let ofProcess: SuiteStorage = TestRunner.usesMemory ? .memory() : .user

  package static var chosen: SuiteStorage { current ?? ofProcess }

  private init(live: LiveSettings) {
    self.live = live
  }

  /// `runtime`: the folder in which mounts are noted; nil: the property lists are used whatever is mounted.
  private init(configuration: String, state: String, runtime: String? = nil) {
    let folder = PropertyListFolder(folder: configuration, stateFolder: state, retention: .standard)
    let user = runtime.map { UserSuites(folder, runtimeFolder: $0) }
    let store = SettingsStore(engine: user ?? folder)
    store.engine.history?.keep(Configuration(suite: SuiteConfiguration(in: store).values).retention)
    // The watch stands before anything is read, so that nothing is missed in between.
    UserFolders.make(configuration)
    live = LiveSettings(store) { changed in
      let files = FolderWatch(configuration, .wholeFiles, followingLinks: ".plist") { news in
        guard case .files(let names) = news else { return changed(nil) }
        for suite in Set(names.compactMap(PropertyListFolder.suite)) { changed(suite.string) }
      }
      guard let user, let runtime else { return files }
      let mount = MountedSuitesWatch(runtimeFolder: runtime) {
        let wasMounted = user.isMounted
        let process = user.look(in: runtime)
        if user.isMounted != wasMounted { changed(nil) }
        return process
      } heard: { suites in
        guard let suites else { return changed(nil) }
        for suite in suites { changed(suite.string) }
      }
      return [files, mount] as [any Sendable]
    }
  }
}
