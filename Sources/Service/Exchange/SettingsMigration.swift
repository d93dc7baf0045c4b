import ClusterRecords
package import Model
package import Store

/// Moves suites from one store of settings to another, each whole or not at all.
///
/// A suite is copied, read back, and only then removed. Killed at any moment it leaves each setting in the first store or in both,
/// and the next one goes on from there.
package struct SettingsMigration: Sendable {
  /// A store of settings, and how much of a suite is changed there in one step.
  package struct Side: Sendable {
    let engine: any SuiteEngine
    /// Whether a change is a message to the mount's process and a transaction of the cluster; else a suite is one file.
    let isCluster: Bool

    /// The suites of this machine.
    package static func files(_ engine: any SuiteEngine) -> Side { Side(engine: engine, isCluster: false) }

    package static func cluster(_ engine: any SuiteEngine) -> Side { Side(engine: engine, isCluster: true) }
  }

  /// Why the rest was not moved.
  package struct Failure: Error {
    /// nil: none in particular.
    package var suite: ExactString?
    package var error: StoreError
    /// Whether settings of this suite may be in the second store already, and some no longer in the first.
    package var isCopied = false
  }

  let source: Side
  let target: Side

  package init(from source: Side, to target: Side) { (self.source, self.target) = (source, target) }
}

extension SettingsMigration {
  /// The suites that are to be moved. Keyhole's own, with the configuration of this machine, stays.
  package func plan() throws(Failure) -> [ExactString] {
    do throws(StoreError) {
      _ = try target.engine.suites()
      return try source.engine.suites().keys.filter { $0 != SuiteConfiguration.suite }.sorted()
    } catch { throw Failure(error: error) }
  }

  /// Why a suite would stay where it is; nil: it would be moved.
  package func check(_ suite: ExactString) throws(Failure) -> StoreError? {
    do throws(StoreError) {
      _ = try checked(suite)
      return nil
    } catch {
      guard error.isOfOneSuite else { throw Failure(suite: suite, error: error) }
      return error
    }
  }

  /// Moves a suite. Returns why it stays where it is; nil: it was moved.
  package func move(_ suite: ExactString) throws(Failure) -> StoreError? {
    var isCopied = false
    do throws(StoreError) {
      guard let (settings, present) = try checked(suite) else { return nil }
      var copy = SuiteCopy(suite, present, in: target)
      do throws(StoreError) {
        try copy.make(keepingVersions: source.engine.history?.keepsVersions(of: suite) ?? true)
        try copy.add(settings)
        try copy.verify(settings)
        let original = SuiteOriginal(suite, settings, in: source)
        try original.requireUnchanged()
        isCopied = true
        try original.remove()
      } catch {
        // Where some may be gone from the first store, all stay in the second.
        if !isCopied { copy.takeBack() }
        throw error
      }
      return nil
    } catch {
      guard !isCopied, error.isOfOneSuite else {
        throw Failure(suite: suite, error: error, isCopied: isCopied)
      }
      return error
    }
  }

  /// The settings of a suite, and those that the other store has of it. nil: the suite is gone.
  private func checked(
    _ suite: ExactString
  ) throws(StoreError) -> (settings: SharedDictionary<Setting>, present: SuiteContents?)? {
    if source.isCluster, suite.string.contains("::") {
      throw .notPermitted(reason: "its name is that of a suite in a layer, which other machines have too")
    }
    guard let contents = try source.engine.read(suite) else { return nil }
    if let reason = contents.readOnly { throw .readOnly(reason: reason) }
    if let reason = try source.engine.readOnlyReason(of: suite) { throw .readOnly(reason: reason) }
    let present = try target.engine.read(suite)
    for (key, setting) in contents.settings {
      if target.isCluster { _ = try setting.storedSize(of: key) }
      guard let other = present?.settings[key], other.value != setting.value else { continue }
      throw .notPermitted(reason: "the other store has another value of its key \(key.string)")
    }
    return (contents.settings, present)
  }
}

/// The copy of a suite that is being made.
private struct SuiteCopy {
  private let suite: ExactString
  private let present: SuiteContents?
  private let side: SettingsMigration.Side
  private var isMade = false
  private var added: SharedDictionary<Setting> = [:]

  init(_ suite: ExactString, _ present: SuiteContents?, in side: SettingsMigration.Side) {
    (self.suite, self.present, self.side) = (suite, present, side)
  }

  mutating func make(keepingVersions: Bool) throws(StoreError) {
    if present == nil {
      _ = try side.engine.create(suite)
      isMade = true
    }
    guard !keepingVersions, side.engine.history?.keepsVersions(of: suite) != false else { return }
    guard let history = side.engine.history else {
      throw .unsupported(reason: "it is one without history, and the other store has no such suites")
    }
    try history.setKeepsVersions(false, of: suite)
  }

  /// Adds what is missing.
  mutating func add(_ settings: SharedDictionary<Setting>) throws(StoreError) {
    let missing = settings.filter { present?.settings[$0.key] == nil }
    for piece in try side.pieces(of: missing) {
      for (key, setting) in piece { added[key] = setting }
      _ = try side.engine.update(suite, known: nil) { (contents) throws(StoreError) in
        for (key, setting) in piece {
          if let other = contents.settings[key], other.value != setting.value { throw .exists }
          contents.settings[key] = setting
        }
      }
    }
  }

  /// Believed only when it was read.
  func verify(_ settings: SharedDictionary<Setting>) throws(StoreError) {
    try side.engine.synchronize(suite)
    let stored = try side.engine.read(suite)?.settings
    guard settings.allSatisfy({ stored?[$0.key]?.value == $0.value.value }) else {
      throw .unsupported(reason: "the other store does not keep it as it is")
    }
  }

  /// Removes what was added, as far as that can be done: the next time it is found to be equal.
  func takeBack() {
    for piece in (try? side.pieces(of: added.map { $0 })) ?? [] {
      _ = try? side.engine.update(suite, known: nil) { (contents) throws(StoreError) in
        for (key, setting) in piece where contents.settings[key]?.value == setting.value {
          contents.settings[key] = nil
        }
      }
    }
    if isMade { try? side.engine.remove(suite) }
  }
}

/// The suite that was copied, in the first store.
private struct SuiteOriginal {
  private let suite: ExactString
  private let settings: SharedDictionary<Setting>
  private let side: SettingsMigration.Side

  init(_ suite: ExactString, _ settings: SharedDictionary<Setting>, in side: SettingsMigration.Side) {
    (self.suite, self.settings, self.side) = (suite, settings, side)
  }

  private static let changed = StoreError.notPermitted(
    reason: "it was changed while it was moved; run it again")

  func requireUnchanged() throws(StoreError) {
    guard let stored = try side.engine.read(suite), stored.settings.hasValues(of: settings) else {
      throw Self.changed
    }
  }

  /// Removes the settings where they are still those that were copied, and then the suite.
  func remove() throws(StoreError) {
    var rest = settings
    for piece in try side.pieces(of: settings.map { $0 }) {
      let expected = rest
      _ = try side.engine.update(suite, known: nil) { (contents) throws(StoreError) in
        guard contents.settings.hasValues(of: expected) else { throw Self.changed }
        for (key, _) in piece { contents.settings[key] = nil }
      }
      for (key, _) in piece { rest[key] = nil }
    }
    do throws(StoreError) { try side.engine.remove(suite) } catch .notFound {} catch .notEmpty {
      throw Self.changed
    }
  }
}

extension SettingsMigration.Side {
  /// The most keys of a change, and bytes; a larger value goes alone.
  private static let (mostKeys, mostBytes) = (500, 512 << 10)

  /// The settings in parts, each of which is changed in one step.
  fileprivate func pieces(
    of settings: [(key: ExactString, value: Setting)]
  ) throws(StoreError) -> [[(key: ExactString, value: Setting)]] {
    guard !settings.isEmpty else { return [] }
    guard isCluster else { return [settings] }
    var pieces: [[(key: ExactString, value: Setting)]] = [[]]
    var size = 0
    for setting in settings {
      let added = try setting.value.storedSize(of: setting.key)
      if size + added > Self.mostBytes || (pieces.last?.count ?? 0) == Self.mostKeys {
        pieces.append([])
        size = 0
      }
      pieces[pieces.count - 1].append(setting)
      size += added
    }
    return pieces.filter { !$0.isEmpty }
  }
}

extension Setting {
  /// The bytes that a cluster stores of it. - Throws: `tooLarge`.
  fileprivate func storedSize(of key: ExactString) throws(StoreError) -> Int {
    let record = SettingRecord(name: key, value: value, modified: modified ?? Timestamp(seconds: 0))
    return try record.encoded().count
  }
}

extension SharedDictionary<Setting> {
  fileprivate func hasValues(of other: Self) -> Bool {
    differences(from: other).allSatisfy { $0.before?.value == $0.after?.value }
  }
}

extension StoreError {
  /// Whether it is about one suite, so that others may be moved.
  fileprivate var isOfOneSuite: Bool {
    switch self {
    case .unsupported, .tooLarge, .invalidName, .nameTooLong, .invalidValue, .notPermitted, .exists, .damaged,
      .readOnly, .notRepresentable, .accessDenied:
      true
    default: false
    }
  }
}
