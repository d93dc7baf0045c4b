public import Model
import Platform
import SecretMemory
import Synchronization

/// The keychain: the only place in the process where its items change.
///
/// Names, sizes and attributes come from an index in memory; every change goes through the actor. The index
/// is filled at the first call that needs it. An engine in another process may hang, so its calls are made
/// outside, each on its caller's thread; the actor then fetches the changes from the engine's memory.
public actor KeychainStore {
  /// The keychain behind the store. A change made through it directly reaches neither index nor feed at once.
  public nonisolated let engine: any KeychainEngine
  /// Publishes each change of an item, and of the lock, after the index has it.
  public nonisolated let feed: ChangeFeed
  /// nil: this process can't ask a person, and items that demand it are refused.
  public nonisolated let controller: AccessController?
  /// nil: no person is asked for the passphrase when a locked secret is wanted.
  public nonisolated let unlocking: UnlockController?
  private nonisolated let retention: Retention?
  nonisolated let remote: (any RemoteKeychain)?
  /// Whether secrets and changes come from another process, which may hang: then only threads that may wait
  /// some seconds should ask for them.
  public nonisolated let mayBlock: Bool
  /// Whether the servers of a cluster are asked for each secret, which may take some seconds.
  public nonisolated let asksServers: Bool
  /// Whether the process that serves the keychain decides at each call who gets a secret; else this store does.
  nonisolated let isDecidedElsewhere: Bool
  nonisolated let executor = QueueExecutor(label: "keyhole.keychain")
  /// How many changes are under way.
  nonisolated let changes = Atomic(0)
  nonisolated let index = Mutex<KeychainIndex?>(nil)
  /// The reading of all items by pages that is under way; nil: none.
  nonisolated let loading = Mutex<ItemLoading?>(nil)
  nonisolated let isLoadingStopped = Atomic(false)
  /// Has documents follow the names of items.
  nonisolated let renameFollower = Mutex<RenameFollower?>(nil)
  nonisolated let verification = Mutex(VerificationSchedule())
  nonisolated let changeCount = Atomic<UInt64>(0)
  /// When outdated versions were deleted last, in seconds since the machine was started; 0: not by this process.
  nonisolated let lastPruning = Atomic<UInt64>(0)
  nonisolated let isPruningDue = Atomic(false)
  /// When a secret was used last, or the keychain unlocked.
  nonisolated let lastUse = Atomic<UInt64>(AccessController.bootTime())
  /// The last reported lock of a remote keychain; nil while that is changed from here.
  nonisolated let knownLock = Mutex<KeychainLock?>(nil)

  /// How much history is kept, for the settings that lie in the keychain. It is called outside of all locks, and may read settings.
  public typealias Retention = @Sendable (_ sealed: [ConfigurationKey: SettingValue]) -> HistoryRetention

  /// - Parameters:
  ///   - engine: the keychain; its items are read with the first call that needs them.
  ///   - feed: where changes are published.
  ///   - controller: asks the user where flags or rules demand it; nil: such accesses are refused.
  ///   - unlocking: asks for the passphrase when a locked secret is wanted; nil: such accesses fail with `locked`.
  ///   - retention: how much history this process keeps; nil: as the engine was made.
  public init(
    engine: any KeychainEngine, feed: ChangeFeed = ChangeFeed(), controller: AccessController? = nil,
    unlocking: UnlockController? = nil, retention: Retention? = nil
  ) {
    (self.controller, self.unlocking, self.retention) = (controller, unlocking, retention)
    self.engine = engine
    self.feed = feed
    remote = engine.remote
    mayBlock = remote != nil
    asksServers = engine.isStale != nil
    isDecidedElsewhere = remote?.decidesAccess ?? false
  }

  /// A serial queue of the store's own, because engines block while they read and write.
  public nonisolated var unownedExecutor: UnownedSerialExecutor {
    executor.asUnownedSerialExecutor()
  }

  /// Whether another process serves the keychain.
  public nonisolated var isServedElsewhere: Bool { remote != nil }

  /// Lends the index of all items; `body` must be short, and must not call the store.
  ///
  /// - Throws: what reading the keychain for the first time throws.
  public nonisolated func read<Value>(
    _ body: (KeychainIndex) throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    try load()
    return try index.withLock { index throws(StoreError) in
      guard let index else { throw Self.unloaded }
      return try body(index)
    }
  }

  static let unloaded = StoreError.unreachable(reason: "the keychain is not loaded")

  /// For how long no secret was read or changed, in seconds on a clock that can't be set and that counts suspend.
  public nonisolated var idleSeconds: UInt64 {
    let last = lastUse.load(ordering: .relaxed)
    // Another thread may use a secret between the two.
    return max(AccessController.bootTime(), last) - last
  }

  nonisolated func noteUse() {
    lastUse.store(AccessController.bootTime(), ordering: .relaxed)
  }

  /// Whether names, sizes and attributes are in memory.
  public nonisolated var isLoaded: Bool { index.withLock { $0 != nil } }

  /// Another number after each change by this process, and after each change of others that it has taken over.
  public nonisolated var changeNumber: UInt64 { changeCount.load(ordering: .acquiring) }

  /// Whether an item is being changed. It may wait for another process's transaction, and readers of a secret wait with it.
  public nonisolated var isChanging: Bool { changes.load(ordering: .relaxed) > 0 }

  /// Looks for what other processes changed, and publishes it.
  public nonisolated func refresh() throws(StoreError) {
    if let remote { return takeNews(of: remote) }
    try executor.run { () throws(StoreError) in
      guard isLoaded else { return }
      let changes = try engine.changes()
      assumeIsolated { $0.takeOver(changes) }
    }
    verifyLater()
  }

  /// Whether the keychain could be changed at this moment. - Throws: `readOnly`, `unreachable`, `system`.
  public nonisolated func requireWritable() throws(StoreError) {
    do throws(StoreError) {
      try engine.requireWritable()
    } catch {
      lookAgain(after: error)
      throw error
    }
  }

  /// A keychain whose file was replaced is opened again, for the next call.
  nonisolated func lookAgain(after error: StoreError) {
    guard case .unreachable = error, remote == nil else { return }
    try? refresh()
  }

  /// Whether an item could be stored like this now.
  ///
  /// - Throws: `locked`; `invalidValue` for a class that needs a passphrase where there is none.
  public nonisolated func checkRoom(for item: Item) throws(StoreError) {
    guard engine.locking.isAccessible(item) else { throw .locked }
    try StorableClasses(engine).check(item)
  }

  /// How much history this process keeps now, after a look at the settings; nil: the keychain keeps none.
  public nonisolated func presentRetention() -> HistoryRetention? {
    guard let history = engine.history, let present = history.retention else { return nil }
    // The process that serves the keychain goes by its own settings.
    guard let retention, remote == nil else { return present }
    // Those of a keychain that was never unlocked are not known.
    guard let sealed = try? sealedConfiguration() else { return present }
    let wanted = retention(sealed)
    if wanted != present { history.keep(wanted) }
    return wanted
  }

  /// Returns when every commit is on the disk.
  public nonisolated func synchronize() throws(StoreError) {
    try engine.synchronize()
  }
}
