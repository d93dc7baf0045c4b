import BusServer
import KeychainSelection
import Model
import Platform
import SecretServiceProtocol
import Store

/// org.freedesktop.secrets over the user's keychain: the Secret Service API, draft 0.2.
///
/// The actor runs on the thread of the bus. It reads the keychain there; what may wait (a change, a question to a person, an
/// exponentiation) runs elsewhere, and the reply is sent when it is done, so no client waits for another one. Calls are read
/// before they are answered, and each client has one answered in turn.
actor SecretServiceServer {
  /// The name of the API on the bus.
  static let name = "org.freedesktop.secrets"

  nonisolated let loop: BusLoop
  nonisolated let keychain: KeychainStore
  nonisolated let feed: ChangeFeed
  nonisolated let options: Options
  nonisolated let deadlines = Deadlines()

  var connection: BusConnection?
  var clients: [String: BusClient] = [:]
  var sessions: [UInt64: BusSession] = [:]
  var prompts: [UInt64: BusPrompt] = [:]
  /// The clients whose next call can be answered, in the order of their turns.
  var ready: [String] = []
  var memory = SessionCollection()
  /// nil: not made yet, or everything has changed since.
  var index: AttributeIndex?
  /// Makes the index.
  var indexing: Task<Void, Never>?
  /// How many changes of items were published while there was no index.
  var changesWithoutIndex: UInt64 = 0
  /// The collections that clients have made; nil: not read yet, or they may have changed since.
  var further: FurtherCollections?
  /// The further collections that clients know of, with their labels.
  var announced: [ServiceObject.Collection: String] = [:]
  var lastNumber: UInt64 = 0
  var turns = ChangeTurns()
  private var following: Task<Void, Never>?
  private var hasEnded = false
  private var events: Events?

  /// The functions that are called when the name comes or goes.
  struct Events: Sendable {
    /// The name was waited for, and is this process's now.
    var onName: @Sendable () -> Void = {}
    /// Another program has the name that is waited for: the reason why nothing is served.
    var onObstacle: @Sendable (String) -> Void = { _ in }
    /// Once, with the reason, when the name or the bus is lost.
    var onLoss: @Sendable (String) -> Void
  }

  /// The functions and settings of the process that serves.
  struct Options: Sendable {
    /// Locks the keychain, and drops what is open of it.
    var lock: @Sendable () throws(StoreError) -> Void
    /// The programs that may have secrets without encryption on the bus, as absolute paths.
    var plainPrograms: @Sendable () -> [String]
    /// The label of `login` outside a vault.
    var label: CollectionLabel
    /// The alias `default`, for the time before the keychain is unlocked first.
    var defaultAlias: DefaultAlias
    /// The folder in which other processes of Keyhole are noted.
    var runtime: String
    /// Nothing can be changed.
    var isReadOnly = false
  }

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  /// - Throws: `BusFailure` without a thread or a descriptor for it.
  init(_ keychain: KeychainStore, _ feed: ChangeFeed, _ options: Options) throws(BusFailure) {
    loop = try BusLoop()
    (self.keychain, self.feed, self.options) = (keychain, feed, options)
    guard loop.start() else { throw BusFailure(reason: "there can be no thread for it") }
  }

  /// Connects to the session bus, takes the name, and serves from then on.
  ///
  /// - Parameters:
  ///   - address: of the bus.
  ///   - replacing: whether it takes the place of a service that lets itself be replaced.
  ///   - waits: whether it takes the name when the program that has it ends.
  ///   - events: called when the name comes or goes.
  /// - Returns: why it waits for the name; nil: it has the name.
  /// - Throws: `BusFailure`; where another program has the name, it is named.
  func start(
    at address: String, replacing: Bool, waits: Bool, _ events: Events
  ) async throws(BusFailure) -> String? {
    announceCollections()
    let connection = try BusConnection(to: address, on: loop) { [weak self] message in
      self?.assumeIsolated { $0.take(message) }
    } lost: { [weak self] in
      self?.assumeIsolated { $0.lose("the session bus is gone") }
    }
    loop.whenRead { [weak self] in self?.assumeIsolated { $0.answerNext() } ?? false }
    (self.connection, self.events) = (connection, events)
    follow()
    takeOverLabel()
    do throws(BusFailure) {
      return try await takeName(replacing: replacing, waits: waits)
    } catch {
      end()
      throw error
    }
  }

  /// Gives up the name, and ends all that waits.
  func end() {
    guard !hasEnded else { return }
    hasEnded = true
    following?.cancel()
    for name in Array(clients.keys) { forget(name) }
    connection?.close()
    connection = nil
    loop.whenRead(nil)
    loop.stop()
  }

  func lose(_ reason: String) {
    guard !hasEnded else { return }
    let report = events.take()?.onLoss
    end()
    report?(reason)
  }

  /// The name is this process's: it serves where it has Keyhole's own name, too.
  private func noteName() async {
    guard await takeOwnName() else { return lose(await descriptionOfOwnName()) }
    events?.onName()
  }

  func report(obstacle: String) { events?.onObstacle(obstacle) }

  func nextNumber() -> UInt64 {
    lastNumber += 1
    return lastNumber
  }

  /// Publishes the changes of the keychain on the bus, those of other interfaces and processes too.
  private func follow() {
    let changes = feed.watch()
    following = Task(executorPreference: loop) { [weak self] in
      for await change in changes {
        guard let self else { return }
        await self.publish(change)
      }
    }
  }
}

// MARK: - Calls

extension SecretServiceServer {
  private func take(_ message: BusMessage) {
    switch message.kind {
    case .signal: takeSignal(message)
    case .call:
      guard clients[message.sender] != nil else { return identify(message) }
      keepWaiting(message)
    }
  }

  private func takeSignal(_ message: BusMessage) {
    guard message.sender == "org.freedesktop.DBus", message.interface == "org.freedesktop.DBus" else {
      return
    }
    let texts = message.arguments.compactMap(\.text)
    switch message.member {
    case "NameOwnerChanged" where texts.count == 3 && texts[0] == Self.name: noteOwner(texts[2])
    case "NameOwnerChanged" where texts.count == 3 && texts[2].isEmpty: forget(texts[0])
    case "NameAcquired" where texts.first == Self.name:
      Task(executorPreference: loop) { await self.noteName() }
    case "NameLost" where texts.first == Self.name: lose("another program has taken the name \(Self.name)")
    default: break
    }
  }

  func dispatch(_ call: BusMessage) {
    do throws(ProtocolError) {
      if let values = try answer(call) { connection?.reply(to: call, .success(values)) }
    } catch {
      reply(to: call, with: error)
    }
  }

  func reply(to call: BusMessage, with error: ProtocolError) {
    connection?.reply(to: call, .failure(BusError(error.name, error.message)))
  }

  /// Work for a call, on the thread of the bus between the waits.
  typealias Later = @Sendable (isolated SecretServiceServer) async throws(ProtocolError) -> [BusValue]

  /// Runs what may wait, and replies when it is done.
  func replyLater(to call: BusMessage, _ body: @escaping Later) {
    Task(executorPreference: loop) { await self.finish(call, body) }
  }

  private func finish(_ call: BusMessage, _ body: Later) async {
    do throws(ProtocolError) {
      let values = try await body(self)
      connection?.reply(to: call, .success(values))
    } catch {
      reply(to: call, with: error)
    }
  }

  /// Runs work of the store on another thread: it may wait for a disk or another process.
  nonisolated func elsewhere<Value: Sendable>(
    _ work: @escaping @Sendable () throws(StoreError) -> Value
  ) async throws(ProtocolError) -> Value {
    let result: Result<Value, StoreError> = await withCheckedContinuation { continuation in
      Background.run {
        continuation.resume(returning: Result { () throws(StoreError) in try work() })
      }
    }
    do throws(StoreError) { return try result.get() } catch { throw ProtocolError(error) }
  }

  /// The same for work that does not wait.
  nonisolated func here<Value: ~Copyable>(
    _ work: () throws(StoreError) -> Value
  ) throws(ProtocolError) -> Value {
    do throws(StoreError) { return try work() } catch { throw ProtocolError(error) }
  }
}

extension ProtocolError {
  /// The error of the API for one of the store.
  init(_ error: StoreError) {
    self =
      switch error {
      case .locked: .isLocked("the keychain is locked; `keyhole unlock` opens it")
      case .notFound: .noObject
      case .exists: .exists(error.message)
      case .unsupported: .notSupported(error.message)
      case .invalidValue, .tooLarge, .notUnicode, .invalidName: .invalid(error.message)
      case .accessDenied, .notPermitted, .readOnly, .rejected, .revoked: .denied(error.message)
      default: .failed(error.message)
      }
  }
}
