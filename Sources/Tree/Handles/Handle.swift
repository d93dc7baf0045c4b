public import Model
public import Notifier
import SecretMemory
import Store
import Synchronization

/// How a file is opened: open(2)'s access mode and flags, as far as they matter here.
public struct OpenMode: OptionSet, Sendable {
  /// The bits of the set, in an order of this type's own, not in that of open(2).
  public let rawValue: Int

  /// The set of these bits.
  public init(rawValue: Int) {
    self.rawValue = rawValue
  }

  /// O_RDONLY or O_RDWR: the content can be read.
  public static let read = OpenMode(rawValue: 1)
  /// O_WRONLY or O_RDWR: the content can be written.
  public static let write = OpenMode(rawValue: 2)
  /// O_TRUNC: what the handle holds begins empty; the value itself stays until the commit.
  public static let truncate = OpenMode(rawValue: 4)
}

/// One open file: what its writers have written so far, or the snapshot that its readers read.
///
/// A value changes all at once, when the handle commits: at `flush` (each close of a descriptor), at `synchronize`
/// (fsync) or, for what neither saw, at `close` (the last one).
///
/// **Locks.** No lock that an operation on memory takes, as that of stat(2), is held across a commit, a lock file or a call
/// over a bus. A commit takes from the draft what it stores, stores it without `state`, and settles the draft afterwards; the
/// locks of the tree (`overlay`, `nodes`, `Node.state`) are held for memory only, too. `commits` is held through a
/// commit, and by nothing else but another commit of the same handle, so that they are stored in turn.
public final class Handle: Sendable {
  /// The file that is open. It stays this one when another file gets its name.
  public let node: Node
  /// How the file was opened; it does not change.
  public let mode: OpenMode
  let tree: FileTree
  let scratch: ScratchFile?
  /// The log of changes, where that is open.
  public let events: EventReader?
  let state: Mutex<State>
  /// Held through a commit, so that those of one handle are stored in turn.
  let commits = Mutex(())

  struct State: Sendable {
    var draft = Draft.untouched(nil)
    var fate = Fate.open
    /// Counts what changed the draft.
    var revision: UInt64 = 0
    /// Which value a reader's snapshot is of: another number for each other value. 0: none.
    var version: UInt64 = 0
    /// When a one-time code ends; nil: no time ends it, or it is none.
    var codeEnd: Timestamp?
    /// The value that a key had when it was opened; nil: the store is asked.
    var original: SettingValue?
    var check = ContentCheck.none
    var declaredType: SettingType?
    /// The permit that its secret was opened with, and will be committed with.
    var permit: Permit?
    /// Of a view: its file as it was opened, or stored by this handle.
    var viewBase: Content?
    /// A time that was set since the last write.
    var modified: Timestamp?
    var writers: [Caller: ProcessID] = [:]
    /// How much of the tree's room for unsaved content it takes, in bytes.
    var reserved = 0
  }

  /// The next step of the draft.
  enum Fate: Sendable {
    /// A close commits it.
    case open
    /// The last commit failed and the caller got the error. The final close must not retry: it cannot report the
    /// result.
    case refused
    /// A signal killed the writer before it closed: only another write, or close of a copy, commits it.
    case abandoned
    /// A write failed. Every later call fails alike, and nothing is committed.
    case failed(StoreError)
    /// The keychain was locked; the content is wiped.
    case sealed
  }

  init(
    _ node: Node, in tree: FileTree, mode: OpenMode, scratch: ScratchFile? = nil,
    events: EventReader? = nil, state: State = State()
  ) {
    self.node = node
    self.tree = tree
    self.mode = mode
    self.scratch = scratch
    self.events = events
    var state = state
    if scratch != nil { state.draft = .shared(isChanged: false) }
    self.state = Mutex(state)
    if mode.contains(.write) {
      node.state.withLock { $0.writers[ObjectIdentifier(self)] = self }
    }
    if node.isSecret { tree.secretHandles.withLock { $0[ObjectIdentifier(self)] = WeakHandle(self) } }
  }

  deinit {
    tree.unsaved.release(state.withLock { $0.reserved })
    _ = tree.secretHandles.withLock { $0.removeValue(forKey: ObjectIdentifier(self)) }
  }

  /// Lends up to `count` bytes from `offset`; fewer, or none, at the end.
  public func read<Value: Sendable>(
    at offset: Int, count: Int, _ body: (Span<UInt8>) -> Value
  ) throws(StoreError) -> Value {
    if let events {
      return body(events.read(at: offset, count: count).span)
    }
    try readOn(from: offset)
    return try readLoaded(at: offset, count: count, body)
  }

  /// The same of a value, without a look at whether it has grown.
  public func readLoaded<Value: Sendable>(
    at offset: Int, count: Int, _ body: (Span<UInt8>) -> Value
  ) throws(StoreError) -> Value {
    if let scratch {
      try requireUnsealed()
      return scratch.state.withLock { state in
        state.content.withBytes { body($0.slice(at: offset, count: count)) }
      }
    }
    let content = try withBase { (state) throws(StoreError) in try state.draft.content() }
    guard let content else { return body(Span()) }
    return content.withBytes { body($0.slice(at: offset, count: count)) }
  }

  /// Whether `caller`'s process has written something here that a close may still commit, and its size then.
  func uncommittedSize(for caller: Caller) -> Int? {
    let writers = state.withLock { state in
      if case .open = state.fate, hasUncommitted(state) { return state.writers }
      return [:]
    }
    guard !writers.isEmpty, let process = caller.process, writers.values.contains(process) else { return nil }
    if let scratch { return scratch.size }
    let stored = tree.committedSize(of: node)
    return state.withLock { $0.draft.isUncommitted ? $0.draft.count(stored: stored) : nil }
  }

  /// Whether a close has something to commit.
  func hasUncommitted(_ state: State) -> Bool {
    // A rename may have made a value of a scratch file after its last write.
    state.draft.isUncommitted && scratch?.isStored != true
  }

  func requireUnsealed() throws(StoreError) {
    guard state.withLock({ !$0.fate.isSealed }) else { throw .locked }
  }
}

extension Handle.Fate {
  /// The error of each later call; nil: there is none.
  var error: StoreError? {
    switch self {
    case .open, .refused, .abandoned: nil
    case .failed(let error): error
    case .sealed: .locked
    }
  }

  var isSealed: Bool {
    if case .sealed = self { return true }
    return false
  }

  /// From now on calls fail with `error`, unless they do already.
  mutating func fail(_ error: StoreError) {
    if self.error == nil { self = .failed(error) }
  }
}

// The value that the file was opened on.
extension Handle {
  private enum Base {
    case value(SettingValue)
    case stored(Permit?)
  }

  /// Runs `body` with a draft whose base is there.
  func withBase<Value: Sendable>(
    _ body: (inout State) throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    while true {
      try loadBase()
      let value = try state.withLock { (state) throws(StoreError) -> Value? in
        if state.fate.isSealed { throw .locked }
        // A commit of another thread may have taken it back.
        return state.draft.lacksBase ? nil : try body(&state)
      }
      if let value { return value }
    }
  }

  /// Reads what the file was opened on, where that was not done yet. Without the lock: the store may take its time.
  func loadBase() throws(StoreError) {
    let missing = try state.withLock { (state) throws(StoreError) -> Base? in
      if state.fate.isSealed { throw .locked }
      guard state.draft.lacksBase else { return nil }
      return state.original.map(Base.value) ?? .stored(state.permit)
    }
    guard let missing else { return }
    let base: Content =
      switch missing {
      case .value(let value): .plain(try tree.settings.codec.content(of: value))
      case .stored(let permit): try tree.committedContent(of: node, permit)
      }
    state.withLock { state in
      if !state.fate.isSealed { state.draft.take(base: base) }
    }
  }
}

extension Span<UInt8> {
  /// Up to `count` bytes from `offset`; none beyond the end.
  @_lifetime(copy self)
  func slice(at offset: Int, count: Int) -> Span<UInt8> {
    guard offset >= 0, count > 0, offset < self.count else { return Span() }
    return extracting(offset...).extracting(first: count)
  }
}
