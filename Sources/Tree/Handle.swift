public import Model
import SecretMemory
import Store
import Synchronization

/// How a file is opened: open(2)'s access mode and flags, as far as they matter here.
public struct OpenMode: OptionSet, Sendable {
  public let rawValue: Int

  public init(rawValue: Int) {
    self.rawValue = rawValue
  }

  public static let read = OpenMode(rawValue: 1)
  public static let write = OpenMode(rawValue: 2)
  /// O_TRUNC: what the handle holds begins empty; the value itself stays until the commit.
  public static let truncate = OpenMode(rawValue: 4)
}

/// One open file: what its writers have written so far, or the snapshot that its readers read.
///
/// A value changes all at once, when the handle commits (section 5 of the contract): at `flush` (each
/// close of a descriptor), at `synchronize` (fsync) or, for what neither saw, at `close` (the last one).
public final class Handle: Sendable {
  public let node: Node
  public let mode: OpenMode
  let tree: Tree
  let scratch: ScratchFile?
  /// The log of changes, where that is open.
  public let events: EventReader?
  let state: Mutex<State>

  struct State: ~Copyable {
    /// Which value a reader's snapshot is of: another number for each other value. 0: none.
    var version: UInt64 = 0
    /// What the handle shows and will commit; nil: not needed yet, then `original` or the store has it.
    var content: Content?
    var original: SettingValue?
    /// What O_APPEND added since the last commit: it goes to the end of the value of that moment.
    var appended: Content?
    /// `content` is more than what was read: what is appended from now on belongs to it.
    var isRewritten = false
    /// Something was written since the last commit.
    var isChanged = false
    /// O_TRUNC, or a creation, waits for a commit although nothing was written.
    var isTruncated = false
    /// The last commit failed and its caller was told: the last close, which can tell nobody, must not make it after
    /// all.
    var isRefused = false
    /// A signal killed the writer before it closed.
    var isAbandoned = false
    /// The keychain was locked meanwhile: what the handle held is wiped for good.
    var isSealed = false
    /// A failed write spoils the handle.
    var failure: StoreError?
    /// Follows the content while it is written in one go, to refuse early what can't become a value.
    var prefix: ContentPrefix?
    var declaredType: SettingType?
    /// What its secret was opened with, and will be committed with.
    var permit: Permit?
    /// A time that was set since the last write.
    var modified: Timestamp?
    var writers: [Caller: ProcessID] = [:]
  }

  init(
    _ node: Node, in tree: Tree, mode: OpenMode, scratch: ScratchFile? = nil,
    events: EventReader? = nil, state: consuming State = State()
  ) {
    self.node = node
    self.tree = tree
    self.mode = mode
    self.scratch = scratch
    self.events = events
    self.state = Mutex(state)
    if mode.contains(.write) {
      node.state.withLock { $0.writers[ObjectIdentifier(self)] = self }
    }
    if node.isSecret { tree.secretHandles.withLock { $0[ObjectIdentifier(self)] = WeakHandle(self) } }
  }

  deinit {
    _ = tree.secretHandles.withLock { $0.removeValue(forKey: ObjectIdentifier(self)) }
  }

  /// Lends up to `count` bytes from `offset`; fewer, or none, at the end.
  public func read<Value: Sendable>(
    at offset: Int, count: Int, _ body: (UnsafeRawBufferPointer) -> Value
  ) throws(StoreError) -> Value {
    guard state.withLock({ !$0.isSealed }) else { throw .locked }
    if let scratch {
      return scratch.state.withLock { state in
        unsafe state.content.withBytes { unsafe body($0.slice(at: offset, count: count)) }
      }
    }
    if let events {
      return unsafe events.read(at: offset, count: count).withUnsafeBytes { unsafe body($0) }
    }
    return try state.withLock { state throws(StoreError) in
      try load(&state)
      if offset >= state.content?.count ?? 0 { readOn(&state) }
      guard let content = state.content.take() else { return unsafe body(.empty) }
      let result = Result { () throws(StoreError) in
        guard let joined = try Self.joined(content, state.appended) else {
          return unsafe content.withBytes { unsafe body($0.slice(at: offset, count: count)) }
        }
        return unsafe joined.withBytes { unsafe body($0.slice(at: offset, count: count)) }
      }
      state.content = .some(consume content)
      return try result.get()
    }
  }

  /// Whether `caller`'s process has written something here that is not committed, and its size then.
  func uncommittedSize(for caller: Caller) -> Int? {
    state.withLock { state in
      guard hasUncommitted(state), let process = caller.process else { return nil }
      guard state.writers.values.contains(process) else { return nil }
      if let scratch { return scratch.size }
      let stored = state.content?.count ?? (state.isTruncated ? 0 : tree.committedSize(of: node))
      return stored + (state.appended?.count ?? 0)
    }
  }

  /// Whether a close has something to commit.
  func hasUncommitted(_ state: borrowing State) -> Bool {
    // A rename may have made a value of a scratch file after its last write.
    (state.isChanged || state.isTruncated) && scratch?.isStored != true
  }

  /// Makes sure that `content` is there: what the handle was opened on, or nothing after O_TRUNC.
  func load(_ state: inout State) throws(StoreError) {
    guard state.content == nil else { return }
    if state.isTruncated {
      state.content = try Content.empty(secret: node.isSecret)
      state.isRewritten = true
    } else if let original = state.original {
      state.content = .plain(try tree.settings.codec.content(of: original))
    } else {
      state.content = try tree.committedContent(of: node, state.permit)
    }
  }

  /// What a reader of an appending handle sees; nil: nothing was appended.
  private static func joined(
    _ content: borrowing Content, _ appended: borrowing Content?
  ) throws(StoreError) -> Content? {
    switch appended {
    case nil: return nil
    case let appended?:
      var joined = try content.copy()
      try unsafe appended.withBytes { (bytes) throws(StoreError) in try unsafe joined.append(bytes) }
      return joined
    }
  }
}

extension UnsafeRawBufferPointer {
  static var empty: UnsafeRawBufferPointer { unsafe UnsafeRawBufferPointer(start: nil, count: 0) }

  func slice(at offset: Int, count: Int) -> UnsafeRawBufferPointer {
    guard offset < self.count, offset >= 0 else { return unsafe .empty }
    return unsafe UnsafeRawBufferPointer(rebasing: self[offset..<Swift.min(self.count, offset + count)])
  }
}
