public import Model
public import Store
import Synchronization

extension FileTree {
  /// utimensat(2); nil leaves a time as it is.
  ///
  /// - Throws: as `setModified`.
  public func setTimes(accessed: Timestamp?, modified: Timestamp?, of node: Node) throws(StoreError) {
    // The time of the last access is that of the last change until one of the two is set.
    let shown = accessed ?? (modified == nil ? nil : try? status(of: node, for: .current).modified)
    if let modified { try setModified(modified, of: node) }
    node.state.withLock { state in
      state.accessed = accessed ?? state.accessed ?? shown
      let time = state.accessed
      state.lastStatus?.accessed = time
    }
  }

  /// How many bytes the name of a new file or directory may have: NAME_MAX. The file of a suite has `.plist` behind it.
  public func longestName(in directory: Node) -> Int {
    directory.place == .defaults ? 255 - ".plist".utf8.count : 255
  }

  /// utimensat(2): sets when a value last changed. What has no time of its own ignores it.
  ///
  /// On a file whose content is not committed yet, it is the time that the commit will have.
  /// - Throws: `readOnly`, `noSpace`, `notFound`.
  public func setModified(_ time: Timestamp, of node: Node) throws(StoreError) {
    let (writers, isRemoved) = node.state.withLock { ($0.writers.values.map { $0 }, $0.isRemoved) }
    // A file without a name keeps what is set for as long as it is open.
    if isRemoved { return node.state.withLock { $0.lastStatus?.modified = time } }
    guard writers.filter({ $0.setModified(time) }).isEmpty else { return }
    switch node.place {
    case .key(let key): try setModified(time, of: key)
    case .value(let place): try setModified(time, of: place)
    case .otpauth(let place): try setModifiedOfOtpauth(time, place)
    case .scratch(let place): setModified(time, of: place)
    default: return
    }
  }

  /// truncate(2): cuts or extends the value at once.
  ///
  /// - Throws: `invalidValue` where what is left is no value of the key's type; `tooLarge`, `readOnly`.
  public func truncate(
    _ node: Node, to count: Int, by caller: Caller, _ permit: Permit? = nil
  ) throws(StoreError) {
    guard !node.isRemoved else { return try truncateRemoved(node, to: count, by: caller) }
    let handle = try open(node, .write, by: caller, permit)
    defer { handle.close() }
    try handle.truncate(to: count, by: caller)
    try handle.flush(by: .current)
  }

  /// Through /proc/PID/fd, a file without a name can still be truncated.
  private func truncateRemoved(_ node: Node, to count: Int, by caller: Caller) throws(StoreError) {
    let limit = node.isSecret ? Self.secretLimit : Self.settingLimit
    guard (0...limit).contains(count) else { throw .tooLarge(limit: limit) }
    let writers = node.state.withLock { Array($0.writers.values) }
    guard !writers.isEmpty else { throw .notFound }
    for writer in writers { try writer.truncate(to: count, by: caller) }
  }

  /// fsync(2) of whatever stands at the node.
  ///
  /// - Throws: the system's errors.
  public func synchronize(_ node: Node) throws(StoreError) {
    switch node.place {
    case .suite(let suite): try settings.suite(suite).synchronize()
    case .key(let key): try settings.suite(key.suite).synchronize()
    case .keychain, .itemClass, .folder, .item, .value, .otpauth, .code, .view:
      try keychain?.synchronize()
    default: return
    }
  }

  private func setModified(_ time: Timestamp, of place: KeyPlace) throws(StoreError) {
    try settings.suite(place.suite).update { (contents) throws(StoreError) in
      guard contents.settings[place.key] != nil else { throw .notFound }
      contents.settings[place.key]?.modified = time
    }
  }

  private func setModified(_ time: Timestamp, of place: ItemPlace) throws(StoreError) {
    guard stagedItem(place) == nil, let item = try storedItem(place) else { return }
    try requireKeychain().update([item.id]) { $0.modified = time }
  }

  private func setModified(_ time: Timestamp, of place: ScratchPlace) {
    overlay.withLock { $0[place] }?.state.withLock { state in
      state.modified = time
      state.hasSetTime = true
    }
  }
}
