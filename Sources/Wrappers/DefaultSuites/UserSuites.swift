import Control
import Model
import Platform
import Store
import Suites
import Synchronization

/// The suites of the user: those of the running mount where its process alone reaches them (a cluster's), else property lists.
///
/// A process that has used those of a mount stays with them when it ends: they can't be changed until there is another mount, and a
/// program does not take this machine's own settings for the others in between.
struct UserSuites: SuiteEngine {
  /// The property lists.
  let folder: any SuiteEngine
  /// The suites of the mount.
  let mounted: MountedSuites
  private let place: Place

  private final class Place: Sendable {
    let isMounted = Atomic(false)
  }

  init(_ folder: any SuiteEngine, runtimeFolder: String) {
    self.folder = folder
    place = Place()
    mounted = MountedSuites(propertyLists: folder.propertyLists, runtimeFolder: runtimeFolder) {
      MountRegistration.newest(in: runtimeFolder)?.process
    }
    look(in: runtimeFolder)
  }

  private init(_ other: UserSuites, _ folder: any SuiteEngine) {
    (self.folder, mounted, place) = (folder, other.mounted, other.place)
  }

  /// Finds which suites they are, and returns the process that has them; nil: every process reads them by itself, or there is no mount.
  @discardableResult
  func look(in runtimeFolder: String) -> Int32? {
    guard let mount = MountRegistration.ofSettings(in: runtimeFolder) else {
      // One that could not be mounted after all.
      if !mounted.hasRead { place.isMounted.store(false, ordering: .releasing) }
      return nil
    }
    place.isMounted.store(mount.hasRemoteSettings, ordering: .releasing)
    return mount.hasRemoteSettings && mount.isAlive ? mount.process : nil
  }

  /// Whether they are those of a mount.
  var isMounted: Bool { place.isMounted.load(ordering: .acquiring) }

  private var present: any SuiteEngine { isMounted ? mounted : folder }
}

extension UserSuites {
  var propertyLists: any PropertyListCoding { folder.propertyLists }

  func suites() throws(StoreError) -> [ExactString: SuiteStamp] { try present.suites() }

  func suiteNames() throws(StoreError) -> [ExactString] { try present.suiteNames() }

  var hasProvenNames: Bool { present.hasProvenNames }

  func stamp(of suite: ExactString) throws(StoreError) -> SuiteStamp? { try present.stamp(of: suite) }

  func read(_ suite: ExactString, since known: SuiteContents?) throws(StoreError) -> SuiteContents? {
    try present.read(suite, since: known)
  }

  func update(
    _ suite: ExactString, known: SuiteContents?, _ body: (inout SuiteContents) throws(StoreError) -> Void
  ) throws(StoreError) -> SuiteContents {
    try present.update(suite, known: known, body)
  }

  func readOnlyReason(of suite: ExactString) throws(StoreError) -> String? {
    try present.readOnlyReason(of: suite)
  }

  func create(_ suite: ExactString) throws(StoreError) -> SuiteContents { try present.create(suite) }

  func remove(_ suite: ExactString) throws(StoreError) { try present.remove(suite) }

  func rename(_ suite: ExactString, to name: ExactString) throws(StoreError) {
    try present.rename(suite, to: name)
  }

  func synchronize(_ suite: ExactString) throws(StoreError) { try present.synchronize(suite) }

  func room() throws(StoreError) -> DiskRoom { try present.room() }

  var history: (any VersionedSuites)? { present.history }

  var origins: (any SettingOrigins)? { present.origins }

  var isStale: Bool? { present.isStale }

  func share(_ contents: SuiteContents, of suite: ExactString) { present.share(contents, of: suite) }

  func problems() -> [Problem] { present.problems() }

  /// The mount's suites have no lock that another process could hold.
  var withoutWaiting: any SuiteEngine { UserSuites(self, folder.withoutWaiting) }

  func waitForLock(of suite: ExactString) throws(StoreError) { try present.waitForLock(of: suite) }
}
