public import Model
import SecretMemory
public import Store
import Synchronization

extension Handle {
  /// Takes `bytes` into the handle; nothing is stored yet.
  ///
  /// Without an offset they go to the end of the value of the moment of the commit (O_APPEND).
  /// - Throws: `invalidValue` as soon as nothing that could follow makes what was written a value of the
  ///   key's type, `notRepresentable` for a template that is not UTF-8, `tooLarge`, `noSpace` for scratch and where all unsaved content together would be too much.
  ///   A failed write spoils the handle.
  public func write(
    _ bytes: Span<UInt8>, at offset: Int?, by caller: Caller
  ) throws(StoreError) {
    if let scratch {
      try requireUnsealed()
      try scratch.write(bytes, at: offset)
      // Written after the file got a value's name: then the next flush commits it.
      return state.withLock { $0.noteWriteToScratch(by: caller) }
    }
    do throws(StoreError) {
      if let offset {
        try put(bytes, at: offset, by: caller)
      } else {
        try append(bytes, by: caller)
      }
    } catch {
      state.withLock { $0.fate.fail(error) }
      throw error
    }
  }

  /// ftruncate(2): counts as a write, and takes effect at the commit.
  ///
  /// - Throws: `tooLarge`.
  public func truncate(to count: Int, by caller: Caller) throws(StoreError) {
    if let scratch {
      try requireUnsealed()
      try scratch.resize(to: count)
      return state.withLock { $0.noteWriteToScratch(by: caller) }
    }
    try requireUnspoilt()
    guard (0...limit).contains(count) else { throw .tooLarge(limit: limit) }
    try withBase { (state) throws(StoreError) in
      if let error = state.fate.error { throw error }
      try reserve(count, for: &state)
      try state.draft.rewrite(secret: node.isSecret) { (content) throws(StoreError) in
        try content.resize(to: count)
      }
      state.check = count == 0 ? tree.check(ofEmpty: node, declared: state.declaredType) : .none
      state.noteWrite(by: caller)
    }
  }

  /// Sets the time that the commit will give the value; a later write undoes it.
  /// Returns whether there is anything to commit; else the caller sets the time of what is stored.
  func setModified(_ time: Timestamp) -> Bool {
    state.withLock { state in
      guard state.fate.error == nil, hasUncommitted(state), !node.isScratch else { return false }
      state.modified = time
      return true
    }
  }

  /// Says how the content that is not committed yet is to be read.
  /// Returns whether there is any, of this process.
  func declare(_ type: SettingType, by caller: Caller) -> Bool {
    state.withLock { state in
      guard state.fate.error == nil, hasUncommitted(state) else { return false }
      state.declaredType = type
      // Of what is there already, the commit is the judge.
      let isEmpty = state.draft.addition == nil && state.draft.count(stored: 0) == 0
      state.check = isEmpty ? .setting(ContentPrefix(type)) : .none
      return true
    }
  }

  /// The most bytes of the file, by the type that is declared for its content. Not under the lock of the state.
  private var limit: Int { limit(state.withLock { $0.declaredType }) }

  private func limit(_ declared: SettingType?) -> Int {
    node.isSecret ? FileTree.secretLimit : tree.limit(of: node, declaredType: declared)
  }

  private func requireUnspoilt() throws(StoreError) {
    if let error = state.withLock({ $0.fate.error }) { throw error }
  }

  private func put(
    _ bytes: Span<UInt8>, at offset: Int, by caller: Caller
  ) throws(StoreError) {
    try requireUnspoilt()
    let limit = limit
    // The kernel gives any offset up to 2⁶³ - 1.
    guard bytes.count <= limit, (0...(limit - bytes.count)).contains(offset) else {
      throw .tooLarge(limit: limit)
    }
    try withBase { (state) throws(StoreError) in try put(bytes, at: offset, into: &state, by: caller) }
  }

  private func put(
    _ bytes: Span<UInt8>, at offset: Int, into state: inout State, by caller: Caller
  ) throws(StoreError) {
    if let error = state.fate.error { throw error }
    let count = state.draft.count(stored: 0)
    try reserve(max(count, offset + bytes.count), for: &state)
    try state.draft.rewrite(secret: node.isSecret) { (content) throws(StoreError) in
      try content.write(bytes, at: offset)
    }
    if offset == count {
      try follow(bytes, in: &state)
    } else {
      state.check = .none
    }
    state.noteWrite(by: caller)
  }

  private func append(_ bytes: Span<UInt8>, by caller: Caller) throws(StoreError) {
    let stored = tree.committedSize(of: node)
    try state.withLock { (state) throws(StoreError) in
      if let error = state.fate.error { throw error }
      switch state.draft {
      case .untouched, .appended: try add(bytes, to: stored, in: &state, by: caller)
      // After O_TRUNC, or an ordinary write, the handle's own content is what grows.
      case .emptied, .rewritten, .shared:
        let (end, limit) = (state.draft.count(stored: 0), limit(state.declaredType))
        guard bytes.count <= limit - min(end, limit) else { throw .tooLarge(limit: limit) }
        try put(bytes, at: end, into: &state, by: caller)
      }
    }
  }

  /// Adds bytes behind the value of the moment of the commit, which has `stored` bytes now.
  private func add(
    _ bytes: Span<UInt8>, to stored: Int, in state: inout State, by caller: Caller
  ) throws(StoreError) {
    if state.draft.addition == nil { state.check = try checkOfStored() }
    let (added, limit) = ((state.draft.addition ?? 0) + bytes.count, limit(state.declaredType))
    guard added <= limit - min(stored, limit) else { throw .tooLarge(limit: limit) }
    try reserve(added, for: &state)
    try state.draft.append(bytes, secret: node.isSecret)
    try follow(bytes, in: &state)
    state.noteWrite(by: caller)
  }

  /// Takes room for unsaved content of `count` bytes; the handle gives it back when it goes.
  private func reserve(_ count: Int, for state: inout State) throws(StoreError) {
    guard count > state.reserved else { return }
    try tree.unsaved.reserve(count - state.reserved)
    state.reserved = count
  }

  private func follow(
    _ bytes: Span<UInt8>, in state: inout State
  ) throws(StoreError) {
    let declared = state.declaredType
    try state.check.take(bytes, expecting: tree.expectedType(of: node, declared: declared))
    guard case .key(let place) = node.place, place.suite == SuiteConfiguration.suite,
      let content = try state.draft.content()
    else { return }
    try tree.checkConfiguration(content, at: place, tree.expectedType(of: node, declared: declared))
  }

  /// Of a key, whose value is in memory. What is added to a template, which ends at the end of a scalar, is a text by itself.
  private func checkOfStored() throws(StoreError) -> ContentCheck {
    if case .view(.file(.templates, _)) = node.place { return .text(TextCheck(isAddition: true)) }
    guard var prefix = tree.prefix(for: node, declared: nil) else { return .none }
    let stored = try tree.committedContent(of: node)
    return stored.withBytes { prefix.append($0) } ? .setting(prefix) : .none
  }
}

extension Handle.State {
  fileprivate mutating func noteWrite(by caller: Caller) {
    revision &+= 1
    modified = nil
    // Content that was refused or given up is wanted again.
    if fate.error == nil { fate = .open }
    if writers[caller] == nil, let process = caller.process { writers[caller] = process }
  }

  fileprivate mutating func noteWriteToScratch(by caller: Caller) {
    if fate.error == nil { draft = .shared(isChanged: true) }
    noteWrite(by: caller)
  }
}
