public import Model
public import Store
import Synchronization

/// Suites in memory: a `SuiteEngine` for tests that need no disk.
///
/// It keeps every rule of the protocol (`SuiteEngineConformance` checks that), and can act as a
/// failing disk does: `refuse`, `setReadOnly`, and `replace` for what another program writes.
public final class MemorySuites: SuiteEngine {
  fileprivate struct Stored {
    var settings: [ExactString: Setting]
    var stamp: SuiteStamp
    var readOnly: String?
  }

  fileprivate struct State {
    var suites: [ExactString: Stored] = [:]
    var clock: Int64 = 1_700_000_000
    var refusal: StoreError?
  }

  /// As given to the initialiser.
  public let propertyLists: any PropertyListCoding
  private let state = Mutex(State())

  /// - Parameter propertyLists: how values are shown as XML; by default they can't be.
  public init(propertyLists: any PropertyListCoding = NoPropertyLists()) {
    self.propertyLists = propertyLists
  }

  /// Every write fails with `error` from now on; nil: writes work again.
  public func refuse(_ error: StoreError?) {
    state.withLock { $0.refusal = error }
  }

  /// The reason that `setReadOnly` has set; nil: none.
  public func readOnlyReason(of suite: ExactString) throws(StoreError) -> String? {
    state.withLock { $0.suites[suite]?.readOnly }
  }

  /// Has changes of the suite fail with `readOnly` and this reason; nil: no more.
  public func setReadOnly(_ suite: ExactString, _ reason: String?) {
    state.withLock { $0.suites[suite]?.readOnly = reason }
  }

  /// Stands for a write by another program: the suite holds `values` from now on; nil: it is gone.
  public func replace(_ suite: ExactString, with values: [ExactString: SettingValue]?) {
    state.withLock { state in
      guard let values else {
        state.suites[suite] = nil
        return
      }
      let old = state.suites[suite]
      let now = state.tick()
      let settings = values.mapValues { Setting($0, modified: now) }
      let kept = (old?.settings ?? [:]).filter { values[$0.key] == $0.value.value }
      state.suites[suite] = Stored(
        settings: settings.merging(kept) { $1 }, stamp: SuiteStamp(modified: now), readOnly: old?.readOnly)
    }
  }

  /// The suites' names and stamps.
  public func suites() throws(StoreError) -> [ExactString: SuiteStamp] {
    state.withLock { $0.suites.mapValues(\.stamp) }
  }

  /// The stamp, whose time grows by one with each change; nil: there is no such suite.
  public func stamp(of suite: ExactString) throws(StoreError) -> SuiteStamp? {
    state.withLock { $0.suites[suite]?.stamp }
  }

  /// The suite's contents; nil: there is no such suite.
  public func read(_ suite: ExactString, since known: SuiteContents?) throws(StoreError) -> SuiteContents? {
    state.withLock { $0.suites[suite]?.contents }
  }

  /// Changes the suite under the lock of all suites. - Throws: as the protocol.
  public func update(
    _ suite: ExactString, known: SuiteContents?,
    _ body: (inout SuiteContents) throws(StoreError) -> Void
  ) throws(StoreError) -> SuiteContents {
    try state.withLock { state throws(StoreError) in
      let old = try state.writable(suite)
      var contents = old.contents
      try body(&contents)
      return state.commit(contents.settings, of: suite, over: old)
    }
  }

  /// Makes an empty suite. - Throws: `invalidName`, `nameTooLong` as for a file `NAME.plist`; `exists`.
  public func create(_ suite: ExactString) throws(StoreError) -> SuiteContents {
    try Self.check(suite)
    return try state.withLock { state throws(StoreError) in
      guard state.suites[suite] == nil else { throw .exists }
      if let refusal = state.refusal { throw refusal }
      let stored = Stored(settings: [:], stamp: SuiteStamp(modified: state.tick()), readOnly: nil)
      state.suites[suite] = stored
      return stored.contents
    }
  }

  /// Removes an empty suite. - Throws: `notFound`, `notEmpty`, `readOnly`.
  public func remove(_ suite: ExactString) throws(StoreError) {
    try state.withLock { state throws(StoreError) in
      guard try state.writable(suite).settings.isEmpty else { throw .notEmpty }
      state.suites[suite] = nil
    }
  }

  /// Renames the suite. - Throws: `invalidName`, `nameTooLong`, `notFound`, `exists`, `readOnly`.
  public func rename(_ suite: ExactString, to name: ExactString) throws(StoreError) {
    try Self.check(name)
    try state.withLock { state throws(StoreError) in
      let stored = try state.writable(suite)
      guard suite != name else { return }
      guard state.suites[name] == nil else { throw .exists }
      state.suites[suite] = nil
      state.suites[name] = stored
    }
  }

  /// Does nothing: there is no disk.
  public func synchronize(_ suite: ExactString) throws(StoreError) {}

  /// A constant: 1,000,000 blocks of 4,096 bytes, of which 400,000 are available.
  public func room() throws(StoreError) -> DiskRoom {
    DiskRoom(blockSize: 4096, blocks: 1_000_000, freeBlocks: 500_000, availableBlocks: 400_000)
  }

  /// Empty: memory has no files that could be left alone.
  public func problems() -> [Problem] { [] }

  private static func check(_ name: ExactString) throws(StoreError) {
    guard !name.isEmpty else { throw .invalidName(reason: "a suite needs a name") }
    guard !name.utf8.contains(where: { $0 == 0x2F || $0 == 0 }) else {
      throw .invalidName(reason: "a suite's name can't hold “/” or NUL")
    }
    guard name.utf8.count + ".plist".utf8.count <= 255 else { throw .nameTooLong }
  }
}

extension MemorySuites.Stored {
  fileprivate var contents: SuiteContents {
    SuiteContents(settings: SharedDictionary(settings), stamp: stamp, readOnly: readOnly)
  }
}

extension MemorySuites.State {
  /// A moment that no other change has.
  fileprivate mutating func tick() -> Timestamp {
    clock += 1
    return Timestamp(seconds: clock)
  }

  fileprivate func writable(_ suite: ExactString) throws(StoreError) -> MemorySuites.Stored {
    guard let stored = suites[suite] else { throw .notFound }
    if let reason = stored.readOnly { throw .readOnly(reason: reason) }
    if let refusal { throw refusal }
    return stored
  }

  fileprivate mutating func commit(
    _ settings: SharedDictionary<Setting>, of suite: ExactString, over old: MemorySuites.Stored
  ) -> SuiteContents {
    var stored = old
    let now = tick()
    for (key, setting) in settings {
      let before = old.settings[key]
      let same = before?.value == setting.value ? before?.modified : nil
      stored.settings[key] = Setting(setting.value, modified: setting.modified ?? same ?? now)
    }
    for key in old.settings.keys where settings[key] == nil { stored.settings[key] = nil }
    if stored.settings.mapValues(\.value) != old.settings.mapValues(\.value) {
      stored.stamp = SuiteStamp(modified: now)
    }
    suites[suite] = stored
    return stored.contents
  }
}

/// No property lists: nothing can be shown as XML, and nothing reads as it.
public struct NoPropertyLists: PropertyListCoding {
  /// There is nothing to configure.
  public init() {}

  /// Throws `unsupported`.
  public func xml(_ value: SettingValue) throws(StoreError) -> [UInt8] {
    throw .unsupported(reason: "no property lists in memory")
  }

  /// nil: no text is a property list.
  public func value(xml text: some Collection<UInt8>) -> SettingValue? { nil }
}
