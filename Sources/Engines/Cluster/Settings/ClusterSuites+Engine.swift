import ClusterRecords
import EtcdClient
package import Model
import Platform
package import Store
import VaultRecords

extension ClusterSuites {
  /// The suites' names, and their stamps.
  package func suites() throws(StoreError) -> [ExactString: SuiteStamp] {
    try start()
    let ids = try withNames { $0 }
    var stamps: [ExactString: SuiteStamp] = [:]
    for (name, id) in ids { stamps[name] = try stamp(of: id) }
    return stamps
  }

  package func suiteNames() throws(StoreError) -> [ExactString] {
    try start()
    return Array(try withNames { $0 }.keys)
  }

  /// The list of suites has a sum of its own.
  package var hasProvenNames: Bool { true }

  package func stamp(of suite: ExactString) throws(StoreError) -> SuiteStamp? {
    guard let id = try id(of: suite) else { return nil }
    return try stamp(of: id)
  }

  private func stamp(of id: ItemKey) throws(StoreError) -> SuiteStamp? {
    let (loaded, stored) = state.use { ($0.loaded[id], $0.heads?[id]) }
    if let loaded, loaded.isBehind { _ = try? loaded.load() }
    if let loaded, let stamp = try loaded.lookAtCopy({ $0.head.stamp(of: id) }) {
      guard loaded.distrust == nil else { return stamp.distrusted }
      return stamp
    }
    guard let stored else { return SuiteStamp(device: id.high, modified: Timestamp(seconds: 0)).distrusted }
    do throws(StoreError) {
      let place = session.paths.suite(id)
      let (content, _) = try RecordSeal.open(
        stored.value, at: RecordPlace(.head, place.head, version: UInt64(clamping: stored.version)),
        for: place.purpose, session.keys)
      return try CollectionHead(content.span).stamp(of: id)
    } catch {
      // Also one of an epoch that is not known, or another format: it concerns this suite alone.
      switch error {
      case .damaged, .unsupported: break
      case .locked where session.keys.isReadable: break
      default: throw error
      }
      return SuiteStamp(device: id.high, modified: Timestamp(seconds: 0)).distrusted
    }
  }

  package func read(_ suite: ExactString, since known: SuiteContents?) throws(StoreError) -> SuiteContents? {
    guard let id = try id(of: suite) else { return nil }
    var contents = try settings(of: id).withCopy { $0.contents(of: id) }
    contents.readOnly = readOnlyReason
    return contents
  }

  /// Keeps the same settings once, while what is shown is what is stored.
  package func share(_ contents: SuiteContents, of suite: ExactString) {
    guard let id = (try? names.lookAtCopy { $0.view.ids[suite] }) ?? nil,
      let settings = state.use({ $0.loaded[id] })
    else { return }
    settings.share(contents.settings)
  }

  package func update(
    _ suite: ExactString, known: SuiteContents?, _ body: (inout SuiteContents) throws(StoreError) -> Void
  ) throws(StoreError) -> SuiteContents {
    try session.limited { () throws(StoreError) in
      guard let id = try id(of: suite) else { throw .notFound }
      let settings = settings(of: id)
      return try settings.withWriter { () throws(StoreError) in
        repeat {
          if let stored = try attempt(id, settings, body) { return stored }
        } while ContinuousClock.now < session.end
        throw .unreachable(reason: "other clients change the suite all the time")
      }
    }
  }

  /// nil: another client was faster.
  private func attempt(
    _ id: ItemKey, _ settings: ClusterCollection<SuiteEntry>,
    _ body: (inout SuiteContents) throws(StoreError) -> Void
  ) throws(StoreError) -> SuiteContents? {
    if let readOnlyReason { throw .readOnly(reason: readOnlyReason) }
    // Nothing is changed while the list of suites does not fit together.
    if names.distrust != nil { try names.load() }
    try foldJournal(of: id, settings)
    let (before, version) = try settings.withCopy { ($0.contents(of: id), $0.version) }
    var after = before
    do throws(StoreError) { try body(&after) } catch {
      // It has seen the copy, which may be behind.
      guard try settings.isPresent(version) else { return nil }
      throw error
    }
    let changes = SettingChanges(from: before.settings, to: after.settings, at: .now)
    guard !changes.list.isEmpty else { return try settings.isPresent(version) ? before : nil }
    var plan = try plan(changes.list, of: id)
    plan.changesValues = changes.changesValues
    try settings.withCopy { copy throws(StoreError) in
      if copy.version == version {
        try keepVersions(of: changes.list, replacing: before.settings, on: copy, of: id, in: &plan)
      }
    }
    guard let draft = try settings.draft(plan, on: version) else { return nil }
    guard try settings.send(draft) == .made else { return nil }
    noteVersions(in: plan, of: id)
    // The change is made; where this fails, the next client that changes the suite does it.
    if plan.journal != nil { try? foldJournal(of: id, settings) }
    return try settings.withCopy { $0.contents(of: id) }
  }

  /// Why nothing can be changed; nil: it can, as far as is known.
  var readOnlyReason: String? {
    guard case .wrongCluster(let reason)? = session.seen.refusal ?? follower.refusal else { return nil }
    return reason
  }

  /// Before a file is opened to be changed: a shell reports no error of close(2). - Throws: `unreachable` as `checkAnswers`.
  package func readOnlyReason(of suite: ExactString) throws(StoreError) -> String? {
    if let readOnlyReason { return readOnlyReason }
    try session.checkAnswers(since: follower.silence, follower.refusal)
    return nil
  }

  /// One transaction, which the cluster has stored when it returns.
  package func create(_ suite: ExactString) throws(StoreError) -> SuiteContents {
    try SuiteName.check(suite)
    if let removed = try removedNames()[suite], try revive(removed, as: suite) {
      return try settings(of: removed).withCopy { $0.contents(of: removed) }
    }
    let id = ItemKey.random()
    let place = session.paths.suite(id)
    try changeNames { copy throws(StoreError) in
      guard copy[suite] == nil else { throw .exists }
      var head = CollectionHead()
      (head.valueVersion, head.valueTime, head.chain) = (1, .now, CommitChain())
      let sealed = try RecordSeal.seal(
        head.encoded, at: RecordPlace(.head, place.head, version: 1), for: place.purpose, session.keys)
      var plan = CollectionPlan([CollectionEdit(id, SuiteName(name: suite))])
      plan.conditions = [.created(key: place.head, equals: 0)]
      plan.operations = [.put(key: place.head, value: sealed, lease: 0)]
      return plan
    }
    return try settings(of: id).withCopy { $0.contents(of: id) }
  }

  /// Makes a removed suite one again, so that the values that its settings had are its own. False: another client did something else with
  /// it, or it is damaged.
  private func revive(_ id: ItemKey, as suite: ExactString) throws(StoreError) -> Bool {
    do throws(StoreError) { try settings(of: id).catchUp() } catch {
      guard case .damaged = error else { throw error }
      return false
    }
    var isThere = true
    try changeNames { ids throws(StoreError) in
      guard ids[suite] == nil else { throw .exists }
      isThere = try names.lookAtCopy { $0.view.removed[suite] == id } ?? false
      return CollectionPlan(isThere ? [CollectionEdit(id, SuiteName(name: suite))] : [])
    }
    return isThere
  }

  /// Values that its settings had stay, and with them the suite's id. A suite of which none is kept goes with all that is stored of it.
  package func remove(_ suite: ExactString) throws(StoreError) {
    try changeNames { ids throws(StoreError) in
      guard let id = ids[suite] else { throw .notFound }
      let settings = settings(of: id)
      try settings.catchUp()
      try settings.withWriter { () throws(StoreError) in try foldJournal(of: id, settings) }
      let (isEmpty, modified, keeps) = try settings.withCopy { copy in
        (copy.view.settings.isEmpty, copy.modified, keepsAny(of: copy))
      }
      guard isEmpty else { throw .notEmpty }
      let former = try names.lookAtCopy { $0.view.removed[suite] } ?? nil
      var plan =
        keeps
        ? CollectionPlan([CollectionEdit(id, SuiteName(name: suite, isRemoved: true))]) : removal(of: id)
      plan.conditions = [.modified(key: session.paths.suite(id).head, equals: modified)]
      // One of the same name that was removed before, while this one had another name.
      if keeps, let former {
        let other = removal(of: former)
        plan.edits += other.edits
        plan.operations += other.operations
      }
      return plan
    }
  }

  /// Whether there are values of settings that are still to be kept.
  private func keepsAny(of copy: VerifiedCopy<SuiteEntry>) -> Bool {
    guard copy.head.keepsVersions else { return false }
    let (versions, now) = (copy.view.versions, session.pruning.time)
    let retention = retention ?? .standard
    return versions.names.contains { !versions.kept(of: $0, retention, at: now).isEmpty }
  }

  /// Removes a suite with everything that is stored of it.
  private func removal(of id: ItemKey) -> CollectionPlan<SuiteName> {
    var plan = CollectionPlan([CollectionEdit<SuiteName>(id, nil)])
    let place = session.paths.suite(id)
    plan.operations = [
      .delete(KeyRange(key: place.head)), .delete(KeyRange(prefix: place.entries)),
      .delete(KeyRange(prefix: place.commits)),
    ]
    return plan
  }

  /// Removes the suites for good that were removed before, and of which nothing is to be kept any more.
  func removeOver() throws(StoreError) {
    for (name, id) in try removedNames() {
      let settings = settings(of: id)
      try settings.catchUp()
      guard try settings.withCopy({ $0.view.settings.isEmpty && !keepsAny(of: $0) }) else { continue }
      try changeNames { _ throws(StoreError) in
        let modified = try settings.withCopy { $0.modified }
        guard try names.lookAtCopy({ $0.view.removed[name] == id }) == true else {
          return CollectionPlan([])
        }
        var plan = removal(of: id)
        plan.conditions = [.modified(key: session.paths.suite(id).head, equals: modified)]
        return plan
      }
    }
  }

  /// Removes a suite whose entries do not prove each other, with everything that is stored of it.
  ///
  /// - Throws: `notPermitted` for a suite that can be read; `notFound`, `locked`, `unreachable`.
  package func discard(_ suite: ExactString) throws(StoreError) {
    try changeNames { ids throws(StoreError) in
      let removed = try removedNames()
      guard let id = ids[suite] ?? removed[suite] else { throw .notFound }
      guard try isDamaged(settings(of: id)) else {
        throw .notPermitted(reason: "it is not damaged; `keyhole rm -r` removes it")
      }
      return removal(of: id)
    }
  }

  private func isDamaged(_ settings: ClusterCollection<SuiteEntry>) throws(StoreError) -> Bool {
    do throws(StoreError) {
      try settings.load()
      try settings.withCopy { _ in }
    } catch {
      guard case .damaged = error else { throw error }
      return true
    }
    return settings.distrust != nil
  }

  package func rename(_ suite: ExactString, to name: ExactString) throws(StoreError) {
    try start()
    guard try names.withCopy({ $0.view.ids[suite] }) != nil else { throw .notFound }
    try SuiteName.check(name)
    guard suite != name else { return }
    try changeNames { ids throws(StoreError) in
      guard let id = ids[suite] else { throw .notFound }
      guard ids[name] == nil else { throw .exists }
      return CollectionPlan([CollectionEdit(id, SuiteName(name: name))])
    }
  }

  /// Changes the list of suites; `plan` may be asked again where another client was faster.
  private func changeNames(
    _ plan: ([ExactString: ItemKey]) throws(StoreError) -> CollectionPlan<SuiteName>
  ) throws(StoreError) {
    try session.limited { () throws(StoreError) in
      try start()
      if let readOnlyReason { throw .readOnly(reason: readOnlyReason) }
      try names.withWriter { () throws(StoreError) in try makeChange(plan) }
    }
  }

  private func makeChange(
    _ plan: ([ExactString: ItemKey]) throws(StoreError) -> CollectionPlan<SuiteName>
  ) throws(StoreError) {
    repeat {
      let (ids, version) = try names.withCopy { ($0.view.ids, $0.version) }
      let made: CollectionPlan<SuiteName>
      do throws(StoreError) { made = try plan(ids) } catch {
        guard try names.isPresent(version) else { continue }
        throw error
      }
      guard let draft = try names.draft(made, on: version) else { continue }
      if try names.send(draft) == .made { return forgetRemoved(draft) }
    } while ContinuousClock.now < session.end
    throw .unreachable(reason: "other clients change the list of suites all the time")
  }

  private func forgetRemoved(_ draft: CollectionDraft<SuiteName>) {
    for id in draft.removed {
      state.use { state in
        state.loaded[id] = nil
        state.heads?[id] = nil
      }
      session.forget(session.paths.suite(id).head)
    }
  }

  /// Does nothing: what the cluster has acknowledged is on the disks of a majority of its servers.
  package func synchronize(_ suite: ExactString) throws(StoreError) {}

  /// The size that etcd's database has at most by default (`--quota-backend-bytes`): how much of it is in use is not asked
  /// for.
  package func room() throws(StoreError) -> DiskRoom {
    let blocks = UInt64(2 << 30) / 4096
    return DiskRoom(blockSize: 4096, blocks: blocks, freeBlocks: blocks, availableBlocks: blocks)
  }

  package func problems() -> [Problem] {
    guard session.isMember else { return [] }
    var problems: [Problem] = []
    let finding = "find out who else writes to the cluster"
    if let error = names.distrust {
      problems.append(
        Problem(
          subject: "the list of suites", reason: error.message,
          remedy: "\(finding); a snapshot of it brings the list back"))
    }
    for (id, settings) in state.use({ $0.loaded }) {
      guard let error = settings.distrust else { continue }
      let name = (try? names.lookAtCopy { $0.entries[id]?.kept.name.string })?.flatMap { $0 }
      let remedy =
        "\(finding); `keyhole cluster discard \(name ?? "SUITE")` removes the suite for all devices"
      problems.append(Problem(subject: name ?? "a suite", reason: error.message, remedy: remedy))
    }
    if let problem = session.problem(of: session.seen.refusal ?? follower.refusal) {
      problems.append(problem)
    }
    return problems
  }
}

extension SuiteStamp {
  /// Another stamp than that of any state that fits together.
  fileprivate var distrusted: SuiteStamp {
    var stamp = self
    stamp.size = -1
    return stamp
  }
}
