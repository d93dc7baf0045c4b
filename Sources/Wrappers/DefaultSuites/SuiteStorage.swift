import InMemory
import Notifier
import Platform
import Store
import Suites
package import WrapperCore

/// Where suites are kept.
///
/// Wrappers use `.user`, or under a test runner a store in memory that only this process has, so that tests
/// don't touch the user's settings. `KEYHOLE_STORE=user` or `=memory` in the environment sets it for a process,
/// `SuiteStorage.$current.withValue(…)` for what is made inside.
public struct SuiteStorage: Sendable {
  package let live: LiveSettings

  /// Where wrappers that are made now keep their suites; nil: where the process does.
  @TaskLocal public static var current: SuiteStorage?

  /// The user's own suites, `$XDG_CONFIG_HOME/*.plist`, by default in `~/.config`; followed while they change.
  public static let user: SuiteStorage = {
    guard let folders = UserFolders.current() else {
      Log.note("settings", "there is no home folder; they are kept in memory. Set HOME")
      return .memory()
    }
    return SuiteStorage(configuration: folders.configuration, state: folders.state)
  }()

  /// A new store in memory, which begins empty and is gone with its last user.
  public static func memory() -> SuiteStorage {
    SuiteStorage(live: LiveSettings(SettingsStore(engine: MemorySuites())))
  }

  /// Suites in a folder of one's own, as other processes that name the same folder see them.
  public static func folder(_ path: String) -> SuiteStorage {
    SuiteStorage(configuration: path, state: path + "/.keyhole")
  }

  private static let ofProcess: SuiteStorage = TestRunner.usesMemory ? .memory() : .user

  package static var chosen: SuiteStorage { current ?? ofProcess }

  private init(live: LiveSettings) {
    self.live = live
  }

  private init(configuration: String, state: String) {
    let store = SettingsStore(engine: PropertyListFolder(folder: configuration, stateFolder: state))
    // The watch stands before anything is read, so that nothing is missed in between.
    UserFolders.make(configuration)
    live = LiveSettings(store) { changed in
      FolderWatch(configuration, .wholeFiles, followingLinks: ".plist") { news in
        guard case .files(let names) = news else { return changed(nil) }
        for name in names where name.hasSuffix(".plist") { changed(String(name.dropLast(6))) }
      }
    }
  }
}
