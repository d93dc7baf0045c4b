public import Model
import Platform
import Synchronization

/// All suites of one folder.
public final class SettingsStore: Sendable {
  /// The folder of suites behind the store.
  public let engine: any SuiteEngine
  /// Settings as the text of their files, with the engine's property lists for what JSON can't express.
  public let codec: SettingCodec
  /// Publishes each change of a suite or a key, after the snapshot has it.
  public let feed: ChangeFeed
  private let open = Mutex<[ExactString: SuiteStore]>([:])
  private let baseline = Baseline()
  private let refreshes = ChangeFeed()
  private let keepsForeignVersions: Bool

  /// `keepsForeignVersions`: whether values that other programs replace are kept, which one process does: the mount's.
  ///
  /// No suite is read before the first call that needs it.
  public init(
    engine: any SuiteEngine, feed: ChangeFeed = ChangeFeed(), keepsForeignVersions: Bool = false
  ) {
    self.keepsForeignVersions = keepsForeignVersions
    self.engine = engine
    self.feed = feed
    codec = SettingCodec(propertyLists: engine.propertyLists)
  }

  /// Whether suites are read from the servers of a cluster, which may take some seconds.
  public var asksServers: Bool { engine.isStale != nil }

  /// The suite of that name, which may or may not exist; always the same object for the same name.
  public func suite(_ name: ExactString) -> SuiteStore {
    open.withLock { open in
      if let known = open[name] { return known }
      let new = SuiteStore(name: name, engine: engine, codec: codec, feed: feed, baseline: baseline)
      new.keepsForeignVersions.store(keepsForeignVersions, ordering: .relaxed)
      open[name] = new
      return new
    }
  }

  /// The suite of that name if it is one: there, and readable as one.
  ///
  /// - Throws: only what means that the folder itself can't be read.
  public func existingSuite(_ name: ExactString) throws(StoreError) -> SuiteStore? {
    if engine.hasProvenNames { return try engine.stamp(of: name) == nil ? nil : suite(name) }
    // Don't allocate state for names that don't exist: programs probe many.
    let isKnown = open.withLock { $0[name] != nil }
    if !isKnown, try engine.stamp(of: name) == nil { return nil }
    let suite = suite(name)
    return try suite.isReadable() ? suite : nil
  }

  /// The suite of that name.
  ///
  /// - Throws: `notFound`; `damaged`, `tooLarge`, `accessDenied` for a file of that name that is no suite.
  public func presentSuite(_ name: ExactString) throws(StoreError) -> SuiteStore {
    if let suite = try existingSuite(name) { return suite }
    do throws(StoreError) {
      guard try engine.stamp(of: name) != nil, try suite(name).fetch() != nil else { throw .notFound }
      return suite(name)
    } catch .invalidName {
      throw .notFound
    } catch .nameTooLong {
      throw .notFound
    }
  }

  /// The names of all suites. Files that are no suites are left out; `problems` names them.
  public func suiteNames() throws(StoreError) -> [ExactString] {
    if engine.hasProvenNames { return try engine.suiteNames() }
    var names: [ExactString] = []
    for name in try engine.suites().keys where try suite(name).isReadable() {
      names.append(name)
    }
    return names
  }

  /// - Throws: `exists`, also for a file of that name that is no suite; `readOnly`, `noSpace`.
  public func createSuite(_ name: ExactString) throws(StoreError) {
    try suite(name).create()
  }

  /// - Throws: `notEmpty`, `notFound`, `readOnly`.
  public func removeSuite(_ name: ExactString) throws(StoreError) {
    try suite(name).remove()
  }

  /// - Throws: `exists`, `notFound`, `readOnly`.
  public func renameSuite(_ name: ExactString, to newName: ExactString) throws(StoreError) {
    guard name != newName else { return }
    try suite(name).rename(to: suite(newName))
  }

  /// Removes a key, or all of a suite that layers below show, from the layer that is written (`SettingOrigins.reset`).
  ///
  /// - Throws: `unsupported` where the settings are not made of layers; as `SettingOrigins.reset`.
  public func reset(_ key: ExactString?, in suite: ExactString) throws(StoreError) -> Int {
    guard let origins = engine.origins else {
      throw .unsupported(reason: "the settings are not made of layers; those of a mount with `layers=` are")
    }
    defer { refresh(suite) }
    return try origins.reset(key, in: suite)
  }
}

extension SettingsStore {
  /// As much as is read at once, in bytes; a suite counts for 4 KiB more.
  private static let readAtOnce = Int64(1 << 20)
  /// Of an engine that knows the suites' names, so many at most are read before they are used.
  private static let mostReadAhead = 256

  /// Takes note of which suites there are, so that whatever differs at a later `refresh` is a change: also of a suite that
  /// was not asked for here. It looks at the folder only, and reads the suites on another thread, or at once where they are
  /// small.
  ///
  /// Of a suite that another program changes before it was read, the keys count that have a later time. Many suites of an engine that
  /// knows their names are not read before they are used or changed.
  public func beginFollowing() {
    let suites = noteSuites()
    guard !engine.hasProvenNames else { return readAhead(suites.count) }
    let bytes = suites.values.reduce(0) { $0 + min($1.size, Self.readAtOnce) + 4096 }
    if bytes <= Self.readAtOnce { return readUnread() }
    Background.run { [weak self] in
      self?.readUnread()
      CurrentProcess.returnUnusedMemory()
    }
  }

  /// Returns those that were not read yet.
  @discardableResult func noteSuites() -> [ExactString: SuiteStamp] {
    let known = open.withLock { open in open.filter { $0.value.snapshot != nil } }
    let unread = ((try? engine.suites()) ?? [:]).filter { known[$0.key] == nil }
    baseline.begin(unread)
    return unread
  }

  /// Reads the suites that were noted on another thread, so that they can be read later without the servers; not where they are many.
  private func readAhead(_ count: Int) {
    guard count <= Self.mostReadAhead else { return }
    Background.run { [weak self] in
      self?.readUnread()
      CurrentProcess.returnUnusedMemory()
    }
  }

  private func readUnread() {
    for name in baseline.unread { refresh(name) }
  }

  /// Looks again at every suite that was ever looked at, and at all that the folder holds. Of an engine that knows the suites'
  /// names, those that were not read are noted as they are now.
  public func refreshAll() {
    defer { refreshes.publish([Change(.overflow, .everything, origin: .external)]) }
    if engine.hasProvenNames {
      readAhead(noteSuites().count)
      for name in open.withLock({ $0.filter { $0.value.snapshot != nil }.keys.map { $0 } }) { refresh(name) }
      return
    }
    let known = open.withLock { Set($0.keys) }
    for name in known.union((try? engine.suites().keys.map { $0 }) ?? []) { refresh(name) }
  }

  /// An element after each `refreshAll`: suites that could not be read before may be readable, for which `feed` has no change.
  package func wholeRefreshes() -> AsyncStream<Change> { refreshes.watch() }

  /// Looks again at a suite that something outside may have changed, and publishes what it finds.
  public func refresh(_ name: ExactString) {
    // A name that never was a suite's, and is none now, must not leave anything behind.
    let isKnown = open.withLock { $0[name] != nil }
    if !isKnown, (try? engine.stamp(of: name)) == nil {
      if baseline.takeRemoved(name) { feed.publish([Change(.deleted, .suite(name), origin: .external)]) }
      return
    }
    _ = try? suite(name).fetch()
  }
}

extension SuiteStore {
  /// Whether the file is a suite. One that is damaged, foreign or unreadable is none, and no error.
  nonisolated func isReadable() throws(StoreError) -> Bool {
    do {
      return try fetch() != nil
    } catch {
      switch error {
      case .damaged, .tooLarge, .accessDenied, .invalidName, .nameTooLong: return false
      default: throw error
      }
    }
  }
}
