import ClusterRecords
import EtcdClient
import Model
import Platform
import VaultRecords

/// A collection of the cluster with a verified copy in memory, for any thread.
///
/// The copy follows the watch and the commits of this process. What does not fit together is never taken over: the copy stays
/// what it was, and the collection is distrusted until all of it fits again.
final class ClusterCollection<Content: CollectionContent>: Sendable {
  struct State {
    var copy: VerifiedCopy<Content>?
    /// For each reading that is under way, the changes since it began, each with its revision.
    var missed: [UInt64: [([KeyChange], Int64)]] = [:]
    var readings: UInt64 = 0
    /// The copy shows all that was stored up to this revision.
    var covered: Int64 = 0
    /// The revision of the last change that was not taken over.
    var doubted: Int64 = 0
    /// A record was sealed under keys that are not known: all is read again with the next call.
    var isBehind = false
    /// Why the cluster's contents were refused; nil: they are those of the copy.
    var distrust: StoreError?
    /// The commits of this process whose replies are awaited.
    var pending: Set<Operation> = []
    /// The revisions of commits of this process that the copy has, and the watch has not reported.
    var own: Set<Int64> = []
    var waiting: [(revision: Int64, promise: Promise<Void>)] = []
  }

  let place: CollectionPlace
  let session: ClusterSession
  let state = Locked(State())
  /// Held by the one thread that changes or reads the whole collection.
  private let writer = Locked(())
  /// Called with the entries that others have changed; it must be short, and not use the collection.
  private let report: @Sendable ([ItemKey]) -> Void

  init(
    _ place: CollectionPlace, _ session: ClusterSession,
    report: @escaping @Sendable ([ItemKey]) -> Void = { _ in }
  ) {
    (self.place, self.session, self.report) = (place, session, report)
  }

  /// Runs `body` while no other thread of this process changes the collection.
  func withWriter<Result: ~Copyable>(_ body: () throws(StoreError) -> Result) throws(StoreError) -> Result {
    try writer.use { (_) throws(StoreError) in try body() }
  }

  /// How many parts of a change of many entries are not brought into those, as far as is known.
  var journalled: Int { ((try? lookAtCopy { $0.head.journal.count }) ?? nil) ?? 0 }

  /// The copy, lent, whatever is known of the cluster; nil: nothing was read yet.
  func lookAtCopy<Result>(_ body: (VerifiedCopy<Content>) throws(StoreError) -> Result) throws(StoreError)
    -> Result?
  {
    try state.use { (state) throws(StoreError) in
      guard let copy = state.copy else { return nil }
      return try body(copy)
    }
  }

  /// Begins with a copy that this device has kept, where nothing was read yet: what is read later is compared with it.
  func begin(with kept: VerifiedCopy<Content>) {
    state.use { $0.copy = $0.copy ?? kept }
  }

  /// Lends the copy, after reading all where that was not done yet.
  ///
  /// - Throws: `damaged` where the cluster's contents were refused; `unreachable`, `locked`.
  func withCopy<Result>(
    _ body: (VerifiedCopy<Content>) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    try withCopyAndExtent(body).0
  }

  /// The same, and how far that copy goes.
  func withCopyAndExtent<Result>(
    _ body: (VerifiedCopy<Content>) throws(StoreError) -> Result
  ) throws(StoreError) -> (Result, CopyExtent) {
    for attempt in 0..<3 {
      let answer = try state.use { (state) throws(StoreError) -> (Result, CopyExtent)? in
        guard state.distrust == nil, !state.isBehind, let copy = state.copy else { return nil }
        return (
          try body(copy),
          CopyExtent(version: copy.version, modified: copy.modified, covered: state.covered)
        )
      }
      if let answer { return answer }
      if attempt < 2 { try load() }
    }
    throw .unreachable(reason: "the cluster changes faster than it can be read")
  }

  /// Whether the copy misses something that was sealed under keys which were not known.
  var isBehind: Bool { state.use { $0.isBehind } }

  /// Why the cluster's contents were refused; nil: they were not.
  var distrust: StoreError? { state.use { $0.distrust } }

  /// Changes up to a revision were missed: all is read with the next call.
  func setBehind(at revision: Int64) {
    state.use { state in
      state.isBehind = true
      state.doubted = max(state.doubted, revision)
    }
  }

  /// Reads everything, and tells what others have changed since the copy. Returns the revision that was read.
  ///
  /// - Throws: `damaged`, `unreachable`, `locked`.
  @discardableResult func load() throws(StoreError) -> Int64 {
    let reading = state.use { state in
      state.readings += 1
      state.missed[state.readings] = []
      return state.readings
    }
    do throws(StoreError) {
      let (fresh, revision) = try session.limited { () throws(StoreError) in try readRenewing() }
      state.use { install(fresh, at: revision, reading, &$0) }
      session.noteReading(of: place.head, nil)
      return revision
    } catch {
      session.noteReading(of: place.head, error)
      state.use { state in
        state.missed[reading] = nil
        if case .damaged = error { state.distrust = error }
      }
      throw error
    }
  }

  /// Reads everything, after fetching the keys where another device has made new ones.
  private func readRenewing() throws(StoreError) -> (VerifiedCopy<Content>, Int64) {
    do throws(StoreError) {
      do throws(StoreError) { return try read() } catch .locked where session.renewKeys() {
        return try read()
      }
    } catch .locked where !session.isMember {
      // Others have stored it since this device was removed.
      throw ClusterStore.isNoMember
    } catch .locked where session.keys.isOpen {
      // There are no keys for it.
      throw VerifiedCopy<Content>.incomplete
    }
  }

  private func read() throws(StoreError) -> (VerifiedCopy<Content>, Int64) {
    let least = session.seen.version(of: place.head)
    let (values, revision): ([[KeyValue]], Int64)
    do throws(ClusterError) {
      (values, revision) = try session.read([KeyRange(key: place.head), KeyRange(prefix: place.entries)])
    } catch { throw StoreError(error) }
    guard let head = values[0].first else { throw VerifiedCopy<Content>.incomplete }
    let fresh = try VerifiedCopy<Content>(place, head: head, entries: values[1], session.keys)
    let epoch = try lookAtCopy { $0.epoch } ?? 0
    guard fresh.version >= least, fresh.epoch >= epoch else {
      throw .damaged(what: "what the cluster stores: it was set back behind what this device has seen; it")
    }
    try checkHistory(of: fresh)
    session.seen.note(place.head, version: fresh.version, fresh.head.chain)
    return (fresh, revision)
  }

  private func install(
    _ fresh: VerifiedCopy<Content>, at revision: Int64, _ reading: UInt64, _ state: inout State
  ) {
    let missed = state.missed.removeValue(forKey: reading) ?? []
    // One that was read before a change which was not taken over does not settle that.
    if revision >= state.doubted { (state.distrust, state.isBehind) = (nil, false) }
    if let known = state.copy, fresh.modified > known.modified {
      state.copy = fresh
      let difference = fresh.difference(from: known)
      if !difference.isEmpty, !areOwn(fresh.head.operations, since: known, state) { report(difference) }
    } else if state.copy == nil {
      state.copy = fresh
    }
    // Reports since then are in the copy, or in `missed`.
    state.covered = max(state.covered, revision)
    for (changes, revision) in missed { take(changes, revision, &state) }
    wake(&state)
  }

  /// Whether this process has made all commits since a copy: those that are not answered yet may be among them.
  private func areOwn(_ operations: [Operation], since known: VerifiedCopy<Content>, _ state: State) -> Bool {
    guard let end = known.head.operations.first.map({ operations.firstIndex(of: $0) }) ?? operations.endIndex
    else { return false }
    return operations[..<end].allSatisfy(state.pending.contains)
  }

  private func isOwn(_ operation: Operation?, _ state: State) -> Bool {
    operation.map(state.pending.contains) ?? false
  }

  func wake(_ state: inout State) {
    guard let modified = state.copy?.modified else { return }
    for waiting in state.waiting where waiting.revision <= modified { waiting.promise.fulfill(()) }
    state.waiting.removeAll { $0.revision <= modified }
  }
}

/// How much of the cluster's history a copy shows.
struct CopyExtent {
  /// The version of its head.
  var version: UInt64
  /// The revision that changed it last.
  var modified: Int64
  /// Up to this revision nothing of the collection is missing.
  var covered: Int64
}

extension ClusterCollection {
  /// Takes over what the watch reports of one revision: changes of this collection's keys. Returns whether others may have made them.
  @discardableResult func take(_ changes: [KeyChange], revision: Int64) -> Bool {
    state.use { state in
      for reading in state.missed.keys { state.missed[reading]?.append((changes, revision)) }
      let isOwn = state.own.contains(revision)
      if !state.own.isEmpty { state.own = state.own.filter { $0 > revision } }
      return take(changes, revision, &state) ?? !isOwn
    }
  }

  /// Returns whether others have made the changes; nil: nothing was taken over.
  @discardableResult private func take(
    _ changes: [KeyChange], _ revision: Int64, _ state: inout State
  ) -> Bool? {
    guard state.copy != nil, state.distrust == nil, !state.isBehind else { return nil }
    do throws(StoreError) {
      let applied = try state.copy?.apply(changes, revision: revision, session.keys)
      state.covered = max(state.covered, revision)
      guard let delta = applied else { return nil }
      if let copy = state.copy {
        session.seen.note(place.head, version: copy.version, copy.head.chain)
      }
      session.noteReading(of: place.head, nil)
      let isForeign = !isOwn(delta.operation, state)
      if isForeign { report(delta.ids) }
      wake(&state)
      return isForeign
    } catch {
      state.doubted = max(state.doubted, revision)
      if case .locked = error {
        state.isBehind = true
        session.lookAtMembers()
      } else {
        state.distrust = error
        report([])
      }
      return true
    }
  }

  /// The copy shows the cluster's state at some moment after the call. - Throws: as `load`.
  func catchUp() throws(StoreError) {
    guard let known = try lookAtCopy({ $0.modified }), distrust == nil else {
      try load()
      return
    }
    let stored: KeyValue?
    let revision: Int64
    do throws(ClusterError) {
      let reply = try session.read([KeyRange(key: place.head)])
      (stored, revision) = (reply.values[0].first, reply.revision)
    } catch { throw StoreError(error) }
    guard let stored else {
      try load()
      return
    }
    if stored.modified > known {
      try waitFor(stored.modified)
    } else if stored.modified < known {
      try load()
    } else {
      noteCovered(revision, at: known)
      session.noteReading(of: place.head, nil)
    }
  }

  /// The head was read at a revision, and is that of the copy which was changed last at `modified`.
  func noteCovered(_ revision: Int64, at modified: Int64) {
    state.use { state in
      if state.copy?.modified == modified { state.covered = max(state.covered, revision) }
    }
  }

  /// Whether a version of the copy is the cluster's present one, at some moment after the call. - Throws: as `load`.
  func isPresent(_ version: UInt64) throws(StoreError) -> Bool {
    try catchUp()
    return try withCopy { $0.version == version }
  }

  /// How long the watch is waited for before all is read.
  private static var patience: Duration { .milliseconds(200) }

  /// Returns when the copy is not older than a revision. - Throws: as `load`.
  func waitFor(_ revision: Int64) throws(StoreError) {
    let promise = state.use { state -> Promise<Void>? in
      guard state.distrust == nil, let copy = state.copy, copy.modified < revision else { return nil }
      let promise = Promise<Void>()
      state.waiting.append((revision, promise))
      return promise
    }
    if let promise {
      if promise.wait(within: Self.patience) != nil { return }
      state.use { $0.waiting.removeAll { $0.promise === promise } }
    }
    let isThere = try lookAtCopy { $0.modified >= revision } ?? false
    if !isThere || distrust != nil { try load() }
  }
}
