import Model
import Platform
import Store
import Synchronization

extension SettingHistoryFiles {
  /// Deletes what is kept of a key, or of all keys. The files are written over before they go.
  ///
  /// - Returns: how many versions.
  func purge(_ suite: ExactString, _ key: ExactString?) throws(StoreError) -> Int {
    try remove(from: suite) { key == nil || $0.key == key }
  }

  /// Deletes what is kept of keys that are about to be removed, and has no process record what they were when they are.
  ///
  /// - Returns: how many versions.
  func purge(_ keys: Set<ExactString>, beforeRemovalFrom suite: ExactString) throws(StoreError) -> Int {
    try state.withLock { state throws(StoreError) in
      state.known[suite] = nil
      // It is the lock of those that record.
      guard let lock = lockedFile(suite) else { throw StoreError(ofSuite: .EAGAIN, "lock") }
      defer { _ = lock }
      do throws(StoreError) { try mark(keys, of: suite) } catch {
        guard error.isOutOfSpace else { throw error }
        try markAll(of: suite)
      }
      guard !read(suite).isEmpty else {
        try SuiteFiles.remove(path(suite))
        return 0
      }
      return try rewrite(suite, without: { keys.contains($0.key) })
    }
  }

  /// Returns how many versions were deleted.
  func remove(
    from suite: ExactString, _ isRemoved: (KeyVersionRecord) -> Bool
  ) throws(StoreError) -> Int {
    try state.withLock { state throws(StoreError) in
      state.known[suite] = nil
      guard !read(suite).isEmpty else { return 0 }
      // No other process appends to what is read and written over here.
      let lock = lockedFile(suite)
      defer { _ = lock }
      return try rewrite(suite, without: isRemoved)
    }
  }

  /// With the lock. Returns how many versions were deleted.
  private func rewrite(
    _ suite: ExactString, without isRemoved: (KeyVersionRecord) -> Bool
  ) throws(StoreError) -> Int {
    let records = read(suite)
    let kept = records.filter { !isRemoved($0) }
    guard kept.count < records.count else { return 0 }
    for name in [path(suite), path(suite) + Self.former] { try overwrite(name) }
    do { try replace(path(suite) + Self.former, with: kept) } catch {
      throw StoreError(ofSuite: error as? Errno ?? .EIO, "write")
    }
    return records.count - kept.count
  }

  private func overwrite(_ path: String) throws(StoreError) {
    do throws(Errno) {
      let file = try Descriptor(path, [.writing, .noFollow, .nonBlocking])
      let size = Int(clamping: try file.status.size)
      try file.write([UInt8](repeating: 0, count: size))
      try file.synchronizeData()
    } catch {
      if error == .ENOENT { return }
      throw StoreError(ofSuite: error, "write")
    }
    try SuiteFiles.remove(path)
  }

  /// Whether nothing is kept of a suite: a mark beside its file says so.
  func isOff(_ suite: ExactString) -> Bool { Files.hasName(path(suite) + Self.off) }

  func setOff(_ isOff: Bool, of suite: ExactString) throws(StoreError) {
    guard isOff != self.isOff(suite) else { return }
    guard isOff else { return try SuiteFiles.remove(path(suite) + Self.off) }
    try makeMark(suite)
    _ = try purge(suite, nil)
  }

  /// Has nothing be kept of a suite from now on. What is kept stays.
  func makeMark(_ suite: ExactString) throws(StoreError) {
    try SuiteFiles.makeFolder(folder)
    try SuiteFiles.call("open") { () throws(Errno) in
      _ = try Descriptor(path(suite) + Self.off, [.writing, .create, .noFollow])
    }
  }

  /// Before a suite is renamed. A mark of the new name is that of a suite which another program has removed.
  func moveMark(_ suite: ExactString, to name: ExactString) throws(StoreError) {
    guard isOff(suite) else { return try SuiteFiles.remove(path(name) + Self.off) }
    try makeMark(name)
  }

  /// After a suite was removed or renamed. A mount that notices it later keeps nothing of it either.
  func removeMark(_ suite: ExactString) {
    guard isOff(suite), (try? markAll(of: suite)) != nil else { return }
    try? SuiteFiles.remove(path(suite) + Self.off)
  }
}
