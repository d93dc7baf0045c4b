public import Model
import Platform
import Synchronization

/// One suite: the only place in the process where its settings change.
///
/// Readers take the published snapshot and never wait. Writers enter the actor, which changes the stored
/// suite under the engine's lock and publishes the result. While another process holds that lock, a writer waits
/// outside: what others change is read in the actor too, and a look at the suite must not wait for a writer.
public actor SuiteStore {
  /// The suite's name, without `.plist`.
  public nonisolated let name: ExactString
  nonisolated let engine: any SuiteEngine
  /// The same suite for changes, which throw `wouldWait` where another process holds the lock.
  nonisolated let impatientEngine: any SuiteEngine
  private nonisolated let codec: SettingCodec
  nonisolated let feed: ChangeFeed
  private nonisolated let baseline: Baseline
  nonisolated let executor: QueueExecutor
  private nonisolated let published = Mutex<SuiteSnapshot?>(nil)
  private nonisolated let generations = Atomic<UInt64>(0)
  /// Whether what other programs replace is kept: by one process of those that see it.
  nonisolated let keepsForeignVersions = Atomic(false)

  init(
    name: ExactString, engine: any SuiteEngine, codec: SettingCodec, feed: ChangeFeed,
    baseline: Baseline
  ) {
    self.name = name
    self.engine = engine
    impatientEngine = engine.withoutWaiting
    self.codec = codec
    self.feed = feed
    self.baseline = baseline
    executor = QueueExecutor(label: "keyhole.suite")
  }

  /// A serial queue of the suite's own, because engines block while they read and write.
  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    executor.asUnownedSerialExecutor()
  }

  /// The last known snapshot; nil: nothing was read yet, or there is no such suite. Reads memory only.
  public nonisolated var snapshot: SuiteSnapshot? {
    published.withLock { $0 }
  }

  /// The stored suite; nil: there is no such suite. Costs a stat(2) where nothing changed.
  ///
  /// A suite that was good and is damaged now keeps its last good values and can't be written.
  /// - Throws: `damaged`, `tooLarge`, `accessDenied` for a file that never was a good suite.
  public nonisolated func fetch() throws(StoreError) -> SuiteSnapshot? {
    let stamp = try engine.stamp(of: name)
    if let known = snapshot, let stamp, known.stamp == stamp { return known }
    return try executor.run { () throws(StoreError) in
      // A commit that this waited for may have been all the news there was.
      let stamp = try engine.stamp(of: name)
      if let known = snapshot, let stamp, known.stamp == stamp { return known }
      return try reload()
    }
  }

  /// The stamp of what is stored, of an engine that needs no reading for it; nil: there is no such suite, or it has to be read.
  public nonisolated func provenStamp() throws(StoreError) -> SuiteStamp? {
    engine.hasProvenNames ? try engine.stamp(of: name) : nil
  }

  /// A number that grows with each snapshot that is published, after it. Who keeps something made of a snapshot
  /// asks here whether it still holds, without a lock.
  public nonisolated var generation: UInt64 { generations.load(ordering: .acquiring) }

  /// Changes the suite in one step, on what is stored at that moment: all that `body` does, or nothing.
  ///
  /// `moving`: the old and the new name of a key that `body` renames, which is published as one move.
  /// `beforePublishing` is called once the change is stored and before `snapshot` shows it; not if the change fails. It
  /// must not use the suite. `origin`: `indirect` where another file than the key's was written.
  /// - Throws: what `body` throws, and `readOnly`, `noSpace`, `notFound`, `damaged` and the system's errors.
  @discardableResult
  public nonisolated func update(
    moving: (from: ExactString, to: ExactString)? = nil, beforePublishing: () -> Void = {},
    origin: Change.Origin = .local, _ body: (inout SuiteContents) throws(StoreError) -> Void
  ) throws(StoreError) -> SuiteSnapshot {
    try withoutLock { () throws(StoreError) in
      try checkWritable()
      let known = snapshot?.contents
      var before: SuiteContents?
      let after = try impatientEngine.update(name, known: known) { (stored) throws(StoreError) in
        before = stored
        try body(&stored)
        if name == SuiteConfiguration.suite { try SuiteConfiguration.check(stored, since: before ?? stored) }
      }
      // Changes by others since the last read are published as theirs, not as this commit's.
      if let before, before.stamp != known?.stamp { assumeIsolated { _ = $0.takeOver(before) } }
      beforePublishing()
      return assumeIsolated { $0.publish(after, moving: moving, origin: origin) }
    }
  }

  /// Whether the suite could be changed at this moment: a disk can become read-only, and a damaged file be
  /// mended, without a change of the file that `fetch` would see.
  ///
  /// - Throws: `readOnly`.
  public nonisolated func requireWritable() throws(StoreError) {
    if snapshot?.readOnly != nil {
      try executor.run { () throws(StoreError) in try checkWritable() }
    } else if let reason = try engine.readOnlyReason(of: name) {
      throw .readOnly(reason: reason)
    }
  }

  /// Returns when every commit is on the disk.
  public nonisolated func synchronize() throws(StoreError) {
    try engine.synchronize(name)
  }
}

extension SuiteStore {
  /// A blocked call of the mount has to end within this time.
  private static let patience = Duration.seconds(10)

  /// Runs a change on the queue, when no other process holds the suite's lock.
  nonisolated func withoutLock<Value>(
    on queue: QueueExecutor? = nil, _ change: () throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    let deadline = ContinuousClock.now + Self.patience
    while true {
      do throws(StoreError) {
        return try (queue ?? executor).run(change)
      } catch .wouldWait where ContinuousClock.now < deadline {
        try engine.waitForLock(of: name)
      } catch .wouldWait {
        throw .unreachable(reason: "another process holds the lock of the suite")
      }
    }
  }
}

// Functions for the queue. These are not isolated themselves, because an engine's body must not cross
// into the actor; they enter it where they touch its state.
extension SuiteStore {
  private nonisolated func reload() throws(StoreError) -> SuiteSnapshot? {
    // Before the contents: a file that is whole only after it was read has another stamp.
    let stamp = try engine.stamp(of: name)
    do {
      guard let fresh = try engine.read(name, since: snapshot?.contents) else {
        assumeIsolated { $0.withdraw(origin: .external) }
        return nil
      }
      return assumeIsolated { $0.takeOver(fresh) }
    } catch {
      return try keepLastGood(error, stamp)
    }
  }

  /// A suite that was good keeps its values; what never was one is the caller's to judge.
  private nonisolated func keepLastGood(
    _ error: StoreError, _ stamp: SuiteStamp?
  ) throws(StoreError) -> SuiteSnapshot {
    guard var last = snapshot?.contents else {
      if case .readOnly(let reason) = error { throw .unreachable(reason: reason) }
      throw error
    }
    switch error {
    case .damaged(let what): last.readOnly = "\(what) is damaged; the last good values are shown"
    // The cluster shows another history, which is not taken over.
    case .readOnly(let reason): last.readOnly = reason
    default: throw error
    }
    last.stamp = stamp
    return assumeIsolated { [last] in $0.publish(last, moving: nil, origin: .external) }
  }

  /// A suite that could not be written when it was last read may have been mended since.
  private nonisolated func checkWritable() throws(StoreError) {
    guard snapshot?.readOnly != nil else { return }
    if let reason = try reload()?.readOnly { throw .readOnly(reason: reason) }
  }
}

extension SuiteStore {
  typealias Move = (from: ExactString, to: ExactString)

  @discardableResult
  private func takeOver(_ fresh: SuiteContents) -> SuiteSnapshot {
    if let known = snapshot, known.stamp == fresh.stamp, known.readOnly == fresh.readOnly { return known }
    keepVersions(before: fresh)
    return publish(fresh, moving: nil, origin: .external)
  }

  /// Keeps what another program has replaced, in the one process that does so.
  private func keepVersions(before fresh: SuiteContents) {
    guard keepsForeignVersions.load(ordering: .relaxed), let previous = snapshot?.contents.settings,
      let history = engine.history
    else { return }
    var (values, removed): ([ExactString: SettingValue], Set<ExactString>) = ([:], [])
    for difference in fresh.settings.differences(from: previous) {
      guard let before = difference.before, before.value != difference.after?.value else { continue }
      values[difference.key] = before.value
      if difference.after == nil { removed.insert(difference.key) }
    }
    if !values.isEmpty { history.keep(values, of: name, removed: removed) }
  }

  @discardableResult
  func publish(
    _ contents: SuiteContents, moving: Move?, origin: Change.Origin
  ) -> SuiteSnapshot {
    let previous = snapshot
    let next = show(contents)
    let changes = next.changes(of: name, since: previous, origin: origin)
    guard previous == nil, origin == .external else {
      feed.publish(moving.map { changes.merging(move: $0, in: name) } ?? changes)
      return next
    }
    switch baseline.meaning(of: name, contents.stamp) {
    case .known: break
    case .changed(let stamp): feed.publish(next.changes(of: name, after: stamp.modified))
    case .new: feed.publish([Change(.created, .suite(name), origin: origin)] + changes)
    }
    return next
  }

  /// Takes `contents` as the present ones, without announcing them.
  @discardableResult
  func show(_ contents: SuiteContents) -> SuiteSnapshot {
    let next = SuiteSnapshot(contents, after: snapshot, codec: codec, version: ValueVersion.next)
    published.withLock { $0 = next }
    generations.add(1, ordering: .releasing)
    engine.share(next.contents, of: name)
    return next
  }

  /// Forgets what the suite holds, and returns it.
  func reset() -> SuiteContents? {
    let last = published.withLock { $0.take() }
    generations.add(1, ordering: .releasing)
    return last?.contents
  }

  func withdraw(origin: Change.Origin) {
    guard let previous = snapshot else {
      if baseline.takeRemoved(name) { feed.publish([Change(.deleted, .suite(name), origin: origin)]) }
      return
    }
    _ = reset()
    let deleted = previous.entries.keys.map {
      Change(.deleted, .key(suite: name, key: $0), origin: origin)
    }
    feed.publish(deleted + [Change(.deleted, .suite(name), origin: origin)])
  }
}
