public import Model
import Store
import Synchronization

extension Handle {
  /// close(2) of one descriptor: commits what was written so far.
  ///
  /// A writer that a signal is killing commits nothing. What the store refuses stays with the handle, for
  /// the writers that still have it.
  /// - Throws: `invalidValue`, `noSpace`, `readOnly`, and whatever spoiled the handle before.
  public func flush(by caller: Caller) throws(StoreError) {
    guard mode.contains(.write) else { return }
    try state.withLock { state throws(StoreError) in
      if let failure = state.failure { throw failure }
      guard hasUncommitted(state) else { return }
      if caller.isBeingKilled {
        state.isAbandoned = true
        return
      }
      guard state.isChanged else { return }
      try commit(&state)
    }
  }

  /// fsync(2): commits, an O_TRUNC alone too, and returns when the value is on the disk.
  public func synchronize() throws(StoreError) {
    try state.withLock { state throws(StoreError) in
      if let failure = state.failure { throw failure }
      if hasUncommitted(state) { try commit(&state) }
    }
    try tree.synchronize(node)
  }

  /// Commits without waiting for the disk.
  func commitNow() throws(StoreError) {
    try state.withLock { state throws(StoreError) in
      if let failure = state.failure { throw failure }
      try commit(&state)
    }
  }

  /// The last close: commits an O_TRUNC alone, a creation, and what was written through a mapping.
  /// Nobody can be told any more, so what can't be committed is dropped.
  ///
  /// Returns whether the file's name is gone with it: it was created, and its writer was killed.
  @discardableResult
  public func close() -> Bool {
    guard mode.contains(.write) else { return false }
    // A writer until the commit is done: so nobody believes a size for longer than that.
    defer { node.state.withLock { $0.writers[ObjectIdentifier(self)] = nil } }
    state.withLock { state in
      let isWanted = state.failure == nil && !state.isAbandoned && !state.isRefused
      if isWanted, hasUncommitted(state) { try? commit(&state) }
    }
    return tree.dropPending(node, ifOnlyWriter: self)
  }

  /// The open was given up before anybody got the handle: nothing of it is committed, no O_TRUNC either.
  public func abandon() {
    state.withLock { $0.isAbandoned = true }
    close()
  }

  private func commit(_ state: inout State) throws(StoreError) {
    guard !node.isRemoved else { return settle(&state) }
    do {
      try store(&state)
    } catch {
      state.isRefused = true
      throw error
    }
    settle(&state)
  }

  private func settle(_ state: inout State) {
    state.isChanged = false
    state.isTruncated = false
    state.modified = nil
    state.declaredType = nil
    if state.appended.take() != nil {
      state.original = nil
      state.content = nil
      state.isRewritten = false
    }
  }

  private func store(_ state: inout State) throws(StoreError) {
    if case .scratch(let place) = node.place { return try keep(&state, in: place) }
    let commit = Commit(declaredType: state.declaredType, modified: state.modified, permit: state.permit)
    if let scratch { return state.permit = try tree.store(scratch, at: node.place, commit) }
    if let appended = state.appended.take() {
      let result = Result { () throws(StoreError) in
        try tree.store(appended, appending: true, at: node.place, commit)
      }
      state.appended = .some(consume appended)
      return state.permit = try result.get()
    }
    try load(&state)
    guard let content = state.content.take() else { return }
    let result = Result { () throws(StoreError) in
      try tree.store(content, appending: false, at: node.place, commit)
    }
    state.content = .some(consume content)
    state.permit = try result.get()
  }

  /// The file was set aside after it was opened, so what was written is the scratch file's.
  private func keep(_ state: inout State, in place: ScratchPlace) throws(StoreError) {
    guard let file = tree.overlay.withLock({ $0[place] }), file !== scratch else { return }
    if let scratch { return try file.replace(with: scratch.snapshot().content) }
    if let appended = state.appended.take() {
      let result = Result { () throws(StoreError) in
        try unsafe appended.withBytes { (bytes) throws(StoreError) in try unsafe file.write(bytes, at: nil) }
      }
      state.appended = .some(consume appended)
      return try result.get()
    }
    try load(&state)
    guard let content = state.content.take() else { return }
    let result = Result { () throws(StoreError) in try file.replace(with: content) }
    state.content = .some(consume content)
    try result.get()
  }
}

/// How a commit is to be made.
struct Commit {
  var declaredType: SettingType?
  /// nil: the moment of the commit.
  var modified: Timestamp?
  var permit: Permit?
  /// Attributes that were set before there was an item; what an item can't have is left out.
  var attributes: [String: [UInt8]] = [:]
}
