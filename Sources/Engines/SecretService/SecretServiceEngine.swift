public import Model
import Platform
public import SecretMemory
public import Store

/// The keyring of the desktop as the keychain: GNOME SecretServiceClient, KeePassXC, KWallet, whatever speaks the Secret
/// Service over the session bus.
///
/// Secrets cross the bus in libsecret's encrypted session. Nothing but names, attributes and lengths is kept
/// here; the service's signals keep them as they are there. A call waits only for its own answer, and at most
/// nine seconds.
public final class SecretServiceEngine: KeychainEngine, RemoteKeychain, LockingKeychain {
  /// In bytes.
  public static let largestSecret = 1 << 20
  /// One that is sealed before it comes here is larger than what is in it. In bytes.
  public static let largestSealed = 2 << 20
  /// How long a call may take, in milliseconds.
  static let patience = 9_000

  /// `secret-service`.
  public let name = "secret-service"
  /// An element after each change that a signal reported, without its content: `takeNews` has that.
  public let news: AsyncStream<Void>

  let keyring: SecretServiceClient
  private let isHeard: AsyncStream<Void>.Continuation

  /// Takes the service on the session bus at `address`. `allowsPlain` is asked where it offers no encrypted session,
  /// on a thread that nothing else of this engine goes on in meanwhile. `startsService`: whether the bus starts one that does not run.
  ///
  /// Nothing is asked of it before the first call. - Throws: `system` where there can be no thread, `unreachable`
  /// where libsecret is not installed.
  public init(
    address: String, startsService: Bool = true, allowsPlain: @escaping @Sendable () -> Bool = { false }
  ) throws(StoreError) {
    let loop = try MainLoop()
    guard loop.start() else { throw .system(.EAGAIN, operation: "pthread_create") }
    let (news, isHeard) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
    (self.news, self.isHeard) = (news, isHeard)
    keyring = SecretServiceClient(
      address: address, startsService: startsService, allowsPlain: allowsPlain, loop: loop
    ) { isHeard.yield() }
  }

  deinit {
    isHeard.finish()
    let keyring = keyring
    Task(executorPreference: keyring.loop) {
      await keyring.close()
      keyring.loop.stop()
    }
  }

  /// Connects, and has the service started where the bus knows how.
  ///
  /// - Throws: `unreachable`, `notPermitted` (no encrypted session), both with the reason.
  public func connect(within milliseconds: Int) throws(StoreError) {
    do throws(StoreError) {
      try wait(until: Deadline(milliseconds: milliseconds)) { keyring, deadline throws(StoreError) in
        _ = try await keyring.ready(before: deadline)
        // With an error the state shows with the first item, as the error does.
        do throws(StoreError) { try await keyring.learnLocks(before: deadline) } catch {}
      }
    } catch {
      // It knows no object or method of a Secret Service.
      guard error == .notFound else { throw error }
      throw .unreachable(
        reason:
          "the program that owns the name org.freedesktop.secrets on the session bus is no Secret Service")
    }
  }
}

extension SecretServiceEngine {
  /// Whether the service has a collection; a new keyring has none before the first item. - Throws: `unreachable`.
  public func hasCollection() throws(StoreError) -> Bool {
    try wait { keyring, deadline throws(StoreError) in try await keyring.hasCollection(before: deadline) }
  }

  /// The service itself: signals report the changes of other programs.
  public var remote: (any RemoteKeychain)? { self }

  /// The service itself.
  public var locking: any LockingKeychain { self }

  /// From memory: open where one collection is.
  public var lockState: KeychainLock { keyring.ledger.lockState }

  /// Has the service lock every collection. - Throws: `unreachable`.
  public func lock() throws(StoreError) {
    try wait { keyring, deadline throws(StoreError) in try await keyring.lock(before: deadline) }
  }

  /// Has the service unlock every collection, with its own window; waits a minute for a person. The
  /// passphrase is the window's affair.
  ///
  /// - Throws: `accessDenied` where it was dismissed, `unreachable`.
  public func unlock(_ passphrase: borrowing SecretBytes) throws(StoreError) {
    try wait { keyring, deadline throws(StoreError) in try await keyring.unlock(before: deadline) }
  }

  /// From memory. Of what is locked the service is asked meanwhile, for not every one tells when it is not any
  /// more.
  public func isAccessible(_ item: Item) -> Bool {
    let isOpen = keyring.ledger[item.id].map { !$0.isLocked } ?? (lockState == .open)
    if !isOpen { lookAgain() }
    return isOpen
  }

  private func lookAgain() {
    let keyring = keyring
    Task(executorPreference: keyring.loop) {
      await keyring.lookAgain(before: Deadline(milliseconds: Self.patience))
    }
  }
}

extension SecretServiceEngine {
  /// Returns when everything is known that others have done so far; without it, that is so within
  /// milliseconds. - Throws: `locked` where no collection was ever unlocked; `unreachable`.
  public func catchUp() throws(StoreError) {
    try wait { keyring, deadline throws(StoreError) in try await keyring.load(before: deadline) }
  }

  /// Every item, with all changes of other programs so far. - Throws: as `catchUp()`.
  public func items() throws(StoreError) -> [Item] {
    try catchUp()
    return keyring.ledger.list()
  }

  /// Answers from memory, like `takeNews`: signals keep it up to date.
  public func changes() throws(StoreError) -> ExternalChanges {
    ExternalChanges(keyring.ledger.takeNews().filter { $0.origin == .external })
  }

  /// The items as the signals so far show them. It does not wait.
  public var known: [Item] { keyring.ledger.items }

  /// One item as the signals so far show it; nil: it is not known. It does not wait.
  public func known(_ item: ItemID) -> Item? { keyring.ledger[item]?.item }

  /// The changes since the last call. It does not wait.
  public func takeNews() -> [ItemNews] {
    keyring.ledger.takeNews()
  }

  /// GetSecret, in the encrypted session. - Throws: `notFound`, `locked`; `unreachable` after nine seconds.
  public func secret(of item: ItemID) throws(StoreError) -> SecretBytes {
    try secret(of: item, until: Deadline(milliseconds: Self.patience))
  }

  func secret(of item: ItemID, until deadline: Deadline) throws(StoreError) -> SecretBytes {
    try wait(until: deadline) { keyring, deadline throws(StoreError) in
      try await keyring.secret(of: item, before: deadline)
    }.take()
  }

  /// CreateItem, without replacing another item. - Throws: `exists`, `noCollection`, `tooLarge`, `unreachable`.
  public func add(_ item: Item, secret: borrowing SecretBytes) throws(StoreError) -> Item {
    try Self.check(secret, of: item)
    let box = try SecretBox(copying: secret)
    return try wait { keyring, deadline throws(StoreError) in
      try await keyring.add(item, box, before: deadline)
    }
  }

  /// Deletes items one after the other; a missing one is no error. - Throws: `locked`, `unreachable`.
  public func remove(_ items: [ItemID]) throws(StoreError) {
    try wait { keyring, deadline throws(StoreError) in try await keyring.remove(items, before: deadline) }
  }

  /// The service has written when it has answered.
  public func synchronize() throws(StoreError) {}

  /// nil: another process stores the items.
  public func room() throws(StoreError) -> DiskRoom? { nil }

  /// Empty: the service reports no damage.
  public func problems() -> [Problem] { [] }
}

extension SecretServiceEngine {
  /// Has the keyring do something, and waits for it on this thread.
  func wait<Value: Sendable>(
    until deadline: Deadline = Deadline(milliseconds: patience),
    _ body: @escaping @Sendable (SecretServiceClient, Deadline) async throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    let keyring = keyring
    let outcome = Promise<Result<Value, StoreError>>()
    Task(executorPreference: keyring.loop) {
      do throws(StoreError) {
        outcome.fulfill(.success(try await body(keyring, deadline)))
      } catch {
        outcome.fulfill(.failure(error))
      }
    }
    return try outcome.wait().get()
  }

  static func check(_ secret: borrowing SecretBytes, of item: Item) throws(StoreError) {
    let limit = item.isSealed ? largestSealed : largestSecret
    guard secret.count <= limit else { throw .tooLarge(limit: limit) }
  }

  static func empty() throws(StoreError) -> SecretBytes {
    do { return try SecretBytes() } catch { throw .outOfMemory }
  }
}
