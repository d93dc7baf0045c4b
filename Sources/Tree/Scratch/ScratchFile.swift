import Model
import Synchronization

/// A file that lives in memory only, as editors make them beside the one they save.
///
/// Unlike values, its content is shared by all handles at once, as in any other file system.
final class ScratchFile: Sendable {
  struct State: Sendable {
    var content: Content
    /// Where a symbolic link points to; nil: a regular file.
    var target: [UInt8]?
    /// By full name; at the commit the valid ones apply.
    var attributes: [String: [UInt8]] = [:]
    var modified: Timestamp
    /// The time was set, not made by a write: a commit keeps it.
    var hasSetTime = false
    /// Counts what changed the content.
    var revision = 0
    /// Which revision a commit has made a value of, after the file got a value's name.
    var storedRevision: Int?
  }

  let state: Mutex<State>
  private let quota: ScratchQuota

  init(quota: ScratchQuota, target: [UInt8]? = nil) throws(StoreError) {
    self.quota = quota
    let content = try Content.empty(secret: quota.isSecret)
    state = Mutex(State(content: content, target: target, modified: .now))
  }

  deinit {
    quota.release(state.withLock { $0.content.count })
  }

  var isSecret: Bool { quota.isSecret }

  var size: Int { state.withLock { $0.target?.count ?? $0.content.count } }

  var isLink: Bool { state.withLock { $0.target != nil } }

  /// Whether all that was written is in a store already.
  var isStored: Bool { state.withLock { $0.revision == $0.storedRevision } }

  /// A commit has stored a snapshot of it, and its attributes with it: they are the value's from now on.
  func noteStored(_ revision: Int) {
    state.withLock { state in
      state.storedRevision = revision
      state.attributes = [:]
      state.hasSetTime = false
    }
  }

  /// - Throws: `noSpace` where all scratch together would be too much.
  func write(_ bytes: Span<UInt8>, at offset: Int?) throws(StoreError) {
    try state.withLock { state throws(StoreError) in
      let start = offset ?? state.content.count
      // The kernel gives any offset up to 2⁶³ - 1.
      let (end, overflows) = start.addingReportingOverflow(bytes.count)
      guard start >= 0, !overflows else { throw .noSpace }
      try grow(by: end - state.content.count) { () throws(StoreError) in
        try state.content.write(bytes, at: start)
      }
      state.touch()
    }
  }

  /// A copy of what it holds, its attributes, and its time where that was set since the last write.
  func snapshot() -> ScratchSnapshot {
    state.withLock { state in
      ScratchSnapshot(
        content: state.content, attributes: state.attributes,
        modified: state.hasSetTime ? state.modified : nil, revision: state.revision)
    }
  }

  /// Takes the whole content of a writer that had the file open under another name.
  func replace(with content: Content) throws(StoreError) {
    try resize(to: content.count)
    try content.withBytes { (bytes) throws(StoreError) in try write(bytes, at: 0) }
  }

  func resize(to count: Int) throws(StoreError) {
    try state.withLock { state throws(StoreError) in
      guard count >= 0 else { throw .invalidValue(reason: "a length is not negative") }
      let growth = count - state.content.count
      try grow(by: growth) { () throws(StoreError) in try state.content.resize(to: count) }
      quota.release(max(0, -growth))
      state.touch()
    }
  }

  private func grow(by count: Int, _ change: () throws(StoreError) -> Void) throws(StoreError) {
    try quota.reserve(max(0, count))
    do { try change() } catch {
      quota.release(max(0, count))
      throw error
    }
  }
}

extension ScratchFile.State {
  fileprivate mutating func touch() {
    modified = .now
    hasSetTime = false
    revision += 1
  }
}

/// The content of a scratch file at one moment.
struct ScratchSnapshot {
  let content: Content
  let attributes: [String: [UInt8]]
  let modified: Timestamp?
  let revision: Int
}

/// How much scratch, or unsaved content, there may be in all: of `keychain` it is locked memory.
final class ScratchQuota: Sendable {
  let isSecret: Bool
  private let limit: Int
  private let used = Atomic<Int>(0)

  init(limit: Int, isSecret: Bool) {
    self.limit = limit
    self.isSecret = isSecret
  }

  func reserve(_ count: Int) throws(StoreError) {
    guard count <= limit else { throw .noSpace }
    guard used.wrappingAdd(count, ordering: .relaxed).newValue <= limit else {
      release(count)
      throw .noSpace
    }
  }

  func release(_ count: Int) {
    used.wrappingSubtract(count, ordering: .relaxed)
  }
}
