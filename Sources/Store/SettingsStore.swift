public import Model
import Synchronization

/// All suites of one folder.
public final class SettingsStore: Sendable {
  public let engine: any SuiteEngine
  public let codec: SettingCodec
  public let feed: ChangeFeed
  private let open = Mutex<[ExactString: SuiteStore]>([:])

  public init(engine: any SuiteEngine, feed: ChangeFeed = ChangeFeed()) {
    self.engine = engine
    self.feed = feed
    codec = SettingCodec(propertyLists: engine.propertyLists)
  }

  /// The suite of that name, which may or may not exist; always the same object for the same name.
  public func suite(_ name: ExactString) -> SuiteStore {
    open.withLock { open in
      if let known = open[name] { return known }
      let new = SuiteStore(name: name, engine: engine, codec: codec, feed: feed)
      open[name] = new
      return new
    }
  }

  /// The suite of that name if it is one: there, and readable as one.
  ///
  /// - Throws: only what means that the folder itself can't be read.
  public func existingSuite(_ name: ExactString) throws(StoreError) -> SuiteStore? {
    // A name that nobody has must not leave anything behind: programs look for many.
    let isKnown = open.withLock { $0[name] != nil }
    if !isKnown, try engine.stamp(of: name) == nil { return nil }
    let suite = suite(name)
    return try suite.isReadable() ? suite : nil
  }

  /// The names of all suites. Files that are no suites are left out; `problems` names them.
  public func suiteNames() throws(StoreError) -> [ExactString] {
    var names: [ExactString] = []
    for name in try engine.suites().keys where try suite(name).isReadable() {
      names.append(name)
    }
    return names
  }

  /// - Throws: `exists`, also for a file of that name that is no suite; `readOnly`, `noSpace`.
  public func createSuite(_ name: ExactString) throws(StoreError) {
    let contents = try engine.create(name)
    feed.publish([Change(.created, .suite(name), origin: .local)])
    suite(name).adopt(contents)
  }

  /// - Throws: `notEmpty`, `notFound`, `readOnly`.
  public func removeSuite(_ name: ExactString) throws(StoreError) {
    try engine.remove(name)
    suite(name).forget(origin: .local)
  }

  /// - Throws: `exists`, `notFound`, `readOnly`.
  public func renameSuite(_ name: ExactString, to newName: ExactString) throws(StoreError) {
    try engine.rename(name, to: newName)
    let change = Change(.moved, .suite(newName), previous: .suite(name), origin: .local)
    suite(name).forgetSilently()
    feed.publish([change])
  }

  /// Looks again at every suite that was ever looked at.
  public func refreshAll() {
    for name in open.withLock({ Array($0.keys) }) { refresh(name) }
  }

  /// Looks again at a suite that something outside may have changed, and publishes what it finds.
  public func refresh(_ name: ExactString) {
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
