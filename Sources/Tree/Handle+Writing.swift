public import Model
import SecretMemory
import Synchronization

extension Handle {
  /// Takes `bytes` into the handle; nothing is stored yet.
  ///
  /// Without an offset they go to the end of the value of the moment of the commit (O_APPEND).
  /// - Throws: `invalidValue` as soon as nothing that could follow makes what was written a value of the
  ///   key's type, `tooLarge`, `noSpace` for scratch. A failed write spoils the handle.
  public func write(
    _ bytes: UnsafeRawBufferPointer, at offset: Int?, by caller: Caller
  ) throws(StoreError) {
    guard state.withLock({ !$0.isSealed }) else { throw .locked }
    if let scratch {
      try unsafe scratch.write(bytes, at: offset)
      // Written after the file got a value's name: then the next flush commits it.
      return state.withLock { noteWrite(by: caller, in: &$0) }
    }
    try state.withLock { state throws(StoreError) in
      if let failure = state.failure { throw failure }
      do throws(StoreError) {
        try unsafe take(bytes, at: offset, into: &state)
      } catch {
        state.failure = error
        throw error
      }
      noteWrite(by: caller, in: &state)
    }
  }

  /// ftruncate(2): counts as a write, and takes effect at the commit.
  ///
  /// - Throws: `tooLarge`.
  public func truncate(to count: Int, by caller: Caller) throws(StoreError) {
    guard state.withLock({ !$0.isSealed }) else { throw .locked }
    if let scratch {
      try scratch.resize(to: count)
      return state.withLock { noteWrite(by: caller, in: &$0) }
    }
    try state.withLock { state throws(StoreError) in
      if let failure = state.failure { throw failure }
      guard count <= limit else { throw .tooLarge(limit: limit) }
      try loadToRewrite(&state)
      try state.content?.resize(to: count)
      state.prefix = count == 0 ? tree.prefix(for: node, declared: state.declaredType) : nil
      noteWrite(by: caller, in: &state)
    }
  }

  /// Sets the time that the commit will give the value; a later write undoes it.
  /// Returns whether there is anything to commit; else the caller sets the time of what is stored.
  func setModified(_ time: Timestamp) -> Bool {
    state.withLock { state in
      guard state.failure == nil, hasUncommitted(state), !node.isScratch else { return false }
      state.modified = time
      return true
    }
  }

  /// Says how the content that is not committed yet is to be read.
  /// Returns whether there is any, of this process.
  func declare(_ type: SettingType, by caller: Caller) -> Bool {
    state.withLock { state in
      guard state.failure == nil, hasUncommitted(state) else { return false }
      state.declaredType = type
      // Of what is there already, the commit is the judge.
      let isEmpty = state.appended == nil && state.content?.count ?? 0 == 0
      state.prefix = isEmpty ? ContentPrefix(type) : nil
      return true
    }
  }

  private var limit: Int { node.isSecret ? Tree.secretLimit : Tree.settingLimit }

  private func take(
    _ bytes: UnsafeRawBufferPointer, at offset: Int?, into state: inout State
  ) throws(StoreError) {
    guard let offset else { return try unsafe append(bytes, to: &state) }
    guard offset + bytes.count <= limit else { throw .tooLarge(limit: limit) }
    try loadToRewrite(&state)
    let isSequential = offset == state.content?.count
    try unsafe state.content?.write(bytes, at: offset)
    guard isSequential else {
      state.prefix = nil
      return
    }
    try unsafe follow(bytes, in: &state)
  }

  private func append(
    _ bytes: UnsafeRawBufferPointer, to state: inout State
  ) throws(StoreError) {
    // After O_TRUNC, or an ordinary write, the handle's own content is what grows.
    if state.isTruncated || state.isRewritten {
      try load(&state)
      return try unsafe take(bytes, at: state.content?.count ?? 0, into: &state)
    }
    if state.appended == nil {
      state.appended = try Content.empty(secret: node.isSecret)
      state.prefix = try prefixOfStored()
    }
    guard tree.committedSize(of: node) + (state.appended?.count ?? 0) + bytes.count <= limit else {
      throw .tooLarge(limit: limit)
    }
    try unsafe state.appended?.append(bytes)
    try unsafe follow(bytes, in: &state)
  }

  /// From here on the handle's own content is what it commits, with what was appended before.
  private func loadToRewrite(_ state: inout State) throws(StoreError) {
    try load(&state)
    state.isRewritten = true
    guard let appended = state.appended.take() else { return }
    try unsafe appended.withBytes { (bytes) throws(StoreError) in
      try unsafe state.content?.append(bytes)
    }
  }

  private func follow(
    _ bytes: UnsafeRawBufferPointer, in state: inout State
  ) throws(StoreError) {
    guard var prefix = state.prefix else { return }
    // Somebody may have given the key another type since: then the commit is the judge.
    guard prefix.type == tree.expectedType(of: node, declared: state.declaredType) else {
      state.prefix = nil
      return
    }
    guard unsafe prefix.append(bytes) else {
      throw .invalidValue(reason: "this can't become a value of the key's type")
    }
    state.prefix = prefix
  }

  private func prefixOfStored() throws(StoreError) -> ContentPrefix? {
    guard var prefix = tree.prefix(for: node, declared: nil) else { return nil }
    let stored = try tree.committedContent(of: node)
    return unsafe stored.withBytes { unsafe prefix.append($0) } ? prefix : nil
  }

  private func noteWrite(by caller: Caller, in state: inout State) {
    state.isChanged = true
    state.isRefused = false
    state.isAbandoned = false
    state.modified = nil
    if state.writers[caller] == nil, let process = caller.process { state.writers[caller] = process }
  }
}
