import Dispatch
public import Model
import Notifier
import Platform
public import Store
import Synchronization

/// The keychain of a running mount, for a process that can't open it by itself: a vault that only the mount has unlocked.
///
/// The mount's process decides who gets a secret, asks whom it has to ask, and keeps the record, as if this
/// process had opened the mount's files. Without a mount the keychain is locked; with the next one it is there
/// again.
public final class MountedKeychain: KeychainEngine, RemoteKeychain {
  /// The name of the mount's engine.
  public let name: String
  private let runtimeFolder: String
  private let patience: Int
  private let find: @Sendable () -> Int32?
  let memory: MountedItems
  /// Connects, one at a time; no other queue waits for it.
  private let connecting = DispatchQueue(label: "keyhole.mounted")
  private let threads = WaitingThreads()
  private let listening = Mutex(Listening())

  private struct Listening {
    /// A mount that did not answer, and until when it is not asked again: each time takes long.
    var silent: (process: Int32, until: ContinuousClock.Instant)?
    var stream: MessageChannel?
    var folder: FolderWatch?
  }

  /// `find` gives the process of the mount; nil: there is none. A call that it does not answer within `patience`
  /// seconds fails, but for the time that a person is being asked.
  ///
  /// `takesBatches`: whether the keychain does, until a mount has said it: what only such a keychain has is then locked and not missing.
  public init(
    name: String, runtimeFolder: String, patience: Int = 10, takesBatches: Bool = false,
    find: @escaping @Sendable () -> Int32?
  ) {
    (self.name, self.runtimeFolder, self.patience, self.find) = (name, runtimeFolder, patience, find)
    memory = MountedItems(takesBatches: takesBatches)
    // So that it is known at once whether it is locked.
    _ = try? connect()
  }

  deinit {
    listening.withLock { $0.stream }?.shut()
  }
}

// MARK: - Connecting

extension MountedKeychain {
  /// Hears of every change from now on. - Throws: `locked` without a mount, `unreachable`.
  @discardableResult
  func connect() throws(StoreError) -> (process: Int32, isNew: Bool) {
    let result: Result<(Int32, Bool), StoreError> = connecting.sync {
      if let process = memory.process { return .success((process, false)) }
      return Result { () throws(StoreError) in (try connectAnew(), true) }
    }
    return try result.get()
  }

  private func connectAnew() throws(StoreError) -> Int32 {
    guard let process = find() else { throw .locked }
    if let silent = listening.withLock({ $0.silent }), silent.process == process, silent.until > .now {
      throw MessageChannel.noAnswer
    }
    let stream = try open(process)
    guard stream.send(.watch) else { throw Self.gone }
    memory.begin(with: process)
    do throws(StoreError) {
      while try !memory.take(stream.receive().content) {}
    } catch {
      memory.end()
      let silent =
        error == MessageChannel.noAnswer ? (process, ContinuousClock.now + .seconds(patience)) : nil
      listening.withLock { $0.silent = silent }
      throw error
    }
    listening.withLock { listening in (listening.stream, listening.silent) = (stream, nil) }
    let isTaken = threads.run { [weak self, memory] in
      // SAFETY of lifetimes: the stream is shut when the engine goes.
      while stream.wait() == .input, let event = try? stream.receive() {
        guard (try? memory.take(event.content)) != nil else { break }
      }
      memory.end()
      self?.lose(stream)
    }
    guard isTaken else { throw .tooManyOpen }
    return process
  }

  /// There may be another mount.
  private func lose(_ stream: MessageChannel) {
    listening.withLock { if $0.stream === stream { $0.stream = nil } }
    _ = try? connect()
  }

  func open(_ process: Int32) throws(StoreError) -> MessageChannel {
    try ControlClient.connect(to: process, in: runtimeFolder, identified: true, patience: patience)
  }

  static let gone = ControlClient.gone

  /// An element after each change that the mount reports; watches for a new mount while there is none.
  public var news: AsyncStream<Void> {
    let watch = FolderWatch(runtimeFolder) { [weak self] _ in
      guard let self, memory.process == nil else { return }
      _ = try? connect()
    }
    listening.withLock { $0.folder = watch }
    return memory.listen()
  }

  /// The changes since the last call. It does not wait.
  public func takeNews() -> [ItemNews] { memory.takeNews() }

  /// The items as the mount last reported them. It does not wait.
  public var known: [Item] { memory.items }

  /// One item as the mount last reported it; nil: it is not known. It does not wait.
  public func known(_ item: ItemID) -> Item? { memory[item] }
}

// MARK: - State

extension MountedKeychain {
  /// The mount's process reports changes.
  public var remote: (any RemoteKeychain)? { self }

  /// The mount's process decides who gets a secret.
  public var decidesAccess: Bool { true }

  /// The reason that the mount last reported; nil: the keychain can be changed.
  public var readOnlyReason: String? { memory.state.readOnlyReason }

  /// That of the mount's keychain; nil also where the mount does not answer.
  public var isStale: Bool? {
    guard case .isStale(let isStale)? = try? request(.fetchIsStale).channel.reply().content else {
      return nil
    }
    return isStale
  }

  /// Every commit of the mount is on the disk already.
  public func synchronize() throws(StoreError) {}

  /// The problems that the mount knows of; empty where it does not answer.
  public func problems() -> [Problem] {
    guard case .problems(let problems)? = try? request(.fetchProblems).channel.reply().content else {
      return []
    }
    return problems
  }

  /// The room of the disk of the mount's keychain. - Throws: `unreachable`.
  public func room() throws(StoreError) -> DiskRoom? {
    guard case .room(let room) = try request(.fetchRoom).channel.reply().content else {
      throw WireReader.unreadable
    }
    return room
  }
}
