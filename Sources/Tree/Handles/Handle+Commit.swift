public import Model
public import Store
import Synchronization

extension Handle {
  /// close(2) of one descriptor: commits what was written so far.
  ///
  /// A writer that a signal is killing commits nothing. What the store refuses stays with the handle, for
  /// the writers that still have it.
  /// - Throws: `invalidValue`, `noSpace`, `readOnly`, and whatever spoiled the handle before.
  public func flush(by caller: Caller) throws(StoreError) {
    guard mode.contains(.write) else { return }
    let isUncommitted = try state.withLock { (state) throws(StoreError) in
      if let error = state.fate.error { throw error }
      return hasUncommitted(state)
    }
    guard isUncommitted else { return }
    guard !caller.isBeingKilled else { return state.withLock { $0.abandon() } }
    try commit { hasUncommitted($0) && $0.draft.isWritten }
  }

  /// fsync(2): commits, an O_TRUNC alone too, and returns when the value is on the disk.
  public func synchronize() throws(StoreError) {
    try commit { hasUncommitted($0) }
    try tree.synchronize(node)
  }

  /// Commits without waiting for the disk, also unchanged content.
  func commitNow() throws(StoreError) {
    try loadBase()
    try commit(.all) { _ in true }
  }

  /// The last close: commits an O_TRUNC alone, a creation, and what was written through a mapping.
  /// An error can't be returned any more, so content that can't be committed is dropped.
  ///
  /// Returns whether the file's name is gone with it: it was created, and its writer was killed.
  @discardableResult
  public func close() -> Bool {
    guard mode.contains(.write) else { return false }
    // A writer until the commit is done: so no size is cached for longer than that.
    defer { node.state.withLock { $0.writers[ObjectIdentifier(self)] = nil } }
    try? commit { state in
      guard case .open = state.fate else { return false }
      return hasUncommitted(state)
    }
    return tree.dropPending(node, ifOnlyWriter: self)
  }

  /// The open was given up before its caller got the handle: nothing of it is committed, no O_TRUNC either.
  public func abandon() {
    state.withLock { $0.abandon() }
    close()
  }
}

extension Handle {
  /// The content that a commit stores, as it was when the commit began.
  fileprivate struct Taken {
    let part: DraftPart
    let revision: UInt64
    let commit: Commit
  }

  /// Which content a commit stores.
  private enum Scope {
    case changed
    /// Also content that was not changed since it was read or committed.
    case all
  }

  /// Commits where `isWanted` says that there is anything to, asked when all earlier commits are done.
  ///
  /// - Throws: what the store refuses it with, and what the handle fails with already.
  private func commit(
    _ scope: Scope = .changed, _ isWanted: (State) -> Bool
  ) throws(StoreError) {
    try commits.withLock { _ throws(StoreError) in
      let taken = try state.withLock { (state) throws(StoreError) in
        if let error = state.fate.error { throw error }
        return isWanted(state) ? try take(scope, from: state) : nil
      }
      // Content that is written to a removed file stays with the handle.
      guard let taken, !node.isRemoved else { return }
      do throws(StoreError) {
        try settle(taken, store(taken.part, taken.commit))
      } catch {
        state.withLock { $0.refuse(taken) }
        throw error
      }
    }
  }

  private func take(_ scope: Scope, from state: State) throws(StoreError) -> Taken? {
    guard let part = try state.draft.part(unwritten: scope == .all, secret: node.isSecret) else { return nil }
    let commit = Commit(
      declaredType: state.declaredType, modified: state.modified, permit: state.permit, base: state.viewBase,
      writer: state.writers.count == 1 ? state.writers.first?.value : nil)
    return Taken(part: part, revision: state.revision, commit: commit)
  }

  private func settle(_ taken: Taken, _ permit: Permit?) throws(StoreError) {
    try state.withLock { (state) throws(StoreError) in
      try state.settle(taken, permit, secret: node.isSecret)
    }
  }

  /// Returns the permit for the next commit.
  private func store(_ part: DraftPart, _ commit: Commit) throws(StoreError) -> Permit? {
    if case .scratch(let place) = node.place {
      try keep(part, in: place)
      return commit.permit
    }
    switch part {
    case .shared:
      guard let scratch else { return commit.permit }
      return try tree.store(scratch, at: node.place, commit)
    case .addition(let added):
      return try tree.store(added, appending: true, at: node.place, commit)
    case .whole(let content):
      return try tree.store(content, appending: false, at: node.place, commit)
    }
  }

  /// The file was set aside after it was opened, so what was written is the scratch file's.
  private func keep(_ part: DraftPart, in place: ScratchPlace) throws(StoreError) {
    guard let file = tree.overlay.withLock({ $0[place] }), file !== scratch else { return }
    switch part {
    case .shared:
      if let scratch { try file.replace(with: scratch.snapshot().content) }
    case .addition(let added):
      try added.withBytes { (bytes) throws(StoreError) in try file.write(bytes, at: nil) }
    case .whole(let content):
      try file.replace(with: content)
    }
  }
}

extension Handle.State {
  fileprivate mutating func abandon() {
    if fate.error == nil { fate = .abandoned }
  }

  /// The taken part can't be stored.
  fileprivate mutating func refuse(_ taken: Handle.Taken) {
    if revision == taken.revision, fate.error == nil { fate = .refused }
  }

  /// The taken part is stored. Later writes wait for the next commit.
  fileprivate mutating func settle(
    _ taken: Handle.Taken, _ newPermit: Permit?, secret isSecret: Bool
  ) throws(StoreError) {
    guard fate.error == nil else { return }
    permit = newPermit
    if case .whole(let content) = taken.part, viewBase != nil { viewBase = content } else { viewBase = nil }
    if case .addition(let stored) = taken.part {
      original = nil
      guard taken.revision == revision else { return try draft.settle(addition: stored, secret: isSecret) }
    }
    guard taken.revision == revision else { return }
    fate = .open
    modified = nil
    declaredType = nil
    draft.settle(taken.part)
  }
}

/// How a commit is to be made.
struct Commit {
  var declaredType: SettingType?
  /// nil: the moment of the commit.
  var modified: Timestamp?
  var permit: Permit?
  /// Of a view: its file as the writer has read it; nil: as it is.
  var base: Content?
  /// Of a setting: the process that has written it; nil: it is unknown, or several have.
  var writer: ProcessID?
  /// Attributes that were set before there was an item; what an item can't have is left out.
  var attributes: [String: [UInt8]] = [:]
  /// Of a setting: called when it is stored and before readers see it.
  var beforePublishing: @Sendable () -> Void = {}
}
