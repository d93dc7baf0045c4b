import Model
import Store

/// The conversation with the Secret Service, on the main loop's thread.
///
/// Nothing here waits without limit: every call over the bus has a deadline. Results go into the ledger,
/// which others read without waiting.
actor SecretServiceClient {
  nonisolated let loop: MainLoop
  nonisolated let ledger = ItemCache()
  let address: String
  /// Whether a session without encryption is taken.
  let allowsPlain: @Sendable () -> Bool
  /// Whether the bus is to start a service that does not run.
  private let startsService: Bool
  let announce: @Sendable () -> Void

  /// State that holds as long as the service and the bus are there.
  var bus: Bus?
  var owner: String?
  var session: SecretSession?

  /// The collections that are known, by path.
  var collections: [String: Collection] = [:] {
    didSet {
      guard ledger.lockState != lockState else { return }
      ledger.lockState = lockState
      announce()
    }
  }
  /// Whose items are in the ledger; nil: nothing was read yet.
  var loadedOwner: String?
  var loading: Task<Result<Void, StoreError>, Never>?
  var dirty = Dirty()
  /// Items with signals that came while this engine itself was changing them.
  var postponed: Set<String> = []
  var locks = ItemLocks()
  var pumping: Task<Void, Never>?
  var probing: Task<Void, Never>?
  var isLookingAgain = false

  struct Collection {
    var label: String
    var isLocked: Bool
    /// Its items have been seen, and are shown also while it is locked.
    var isKnown: Bool
  }

  /// The parts that have to be read again.
  struct Dirty {
    var everything = false
    var collections: Set<String> = []
    var items: Set<String> = []

    var isEmpty: Bool { !everything && collections.isEmpty && items.isEmpty }
  }

  init(
    address: String, startsService: Bool, allowsPlain: @escaping @Sendable () -> Bool, loop: MainLoop,
    announce: @escaping @Sendable () -> Void
  ) {
    self.address = address
    (self.startsService, self.allowsPlain) = (startsService, allowsPlain)
    self.loop = loop
    self.announce = announce
  }

  nonisolated var unownedExecutor: UnownedSerialExecutor {
    loop.asUnownedSerialExecutor()
  }

  private var lockState: KeychainLock {
    // The one that lives until the end of the session has no password.
    let lockable = collections.filter { !$0.key.hasSuffix("/session") }.map(\.value)
    if lockable.contains(where: { !$0.isLocked }) || lockable.isEmpty { return .open }
    return lockable.contains(where: \.isKnown) ? .locked : .sealed
  }

  func close() {
    bus = nil
    session = nil
  }
}

// MARK: Connecting

extension SecretServiceClient {
  /// Connects, starts the service and opens a session, as far as that is not done.
  ///
  /// - Throws: `unreachable`; `notPermitted` where there is none but a plain session.
  func ready(before deadline: Deadline) async throws(StoreError) -> (Bus, SecretSession) {
    if let bus, let session, owner != nil { return (bus, session) }
    do throws(BusError) {
      let bus = try await connected(before: deadline)
      if owner == nil { try await findOwner(on: bus, before: deadline) }
      if let session { return (bus, session) }
      let opened = try await SecretSession.open(on: bus, before: deadline)
      guard !opened.isPlain || allowsPlain() else { throw .refused(name: BusError.plain, message: "") }
      session = opened
      return (bus, opened)
    } catch {
      throw note(error)
    }
  }

  private func connected(before deadline: Deadline) async throws(BusError) -> Bus {
    if let bus, !bus.isClosed { return bus }
    lose()
    let bus = try await Bus.connect(to: address, before: deadline)
    // Another call may have been faster.
    if let present = self.bus { return present }
    self.bus = bus
    listen(to: bus)
    return bus
  }

  private func findOwner(on bus: Bus, before deadline: Deadline) async throws(BusError) {
    let daemon = "org.freedesktop.DBus"
    let path = "/org/freedesktop/DBus"
    let name = Variant(ServiceName.bus)
    do throws(BusError) {
      owner = try await bus.call(daemon, path, daemon, "GetNameOwner", [name], before: deadline)[0]?.string
    } catch {
      guard case .gone = error, !bus.isClosed, startsService else { throw error }
      let flags = Variant(number: 0)
      _ = try await bus.call(daemon, path, daemon, "StartServiceByName", [name, flags], before: deadline)
      owner = try await bus.call(daemon, path, daemon, "GetNameOwner", [name], before: deadline)[0]?.string
    }
    // Keyhole's own service has this name too, and serves the vault: as an engine, the vault would lead to itself.
    let own = try? await bus.call(
      daemon, path, daemon, "GetNameOwner", [Variant(ServiceName.ownBus)], before: deadline)[0]?.string
    if let own, own == owner {
      owner = nil
      throw .refused(name: BusError.ownService, message: "")
    }
    guard loadedOwner != nil, loadedOwner != owner else { return }
    dirty.everything = true
    pump()
  }

  /// The bus is gone, and with it the service.
  func lose() {
    bus = nil
    owner = nil
    session = nil
    forgetLocks()
    // Another bus gives out the same names again.
    if loadedOwner != nil { loadedOwner = "" }
  }

  /// Calls a method of the service's.
  func call(
    _ path: String, _ interface: String, _ method: String, _ arguments: [Variant] = [],
    before deadline: Deadline
  ) async throws(BusError) -> Variant {
    guard let bus else { throw .gone(reason: "there is no connection to the session bus") }
    return try await bus.call(ServiceName.bus, path, interface, method, arguments, before: deadline)
  }

  func property(
    _ path: String, _ interface: String, _ name: String, before deadline: Deadline
  ) async throws(BusError) -> Variant? {
    try await call(
      path, ServiceName.properties, "Get", [Variant(interface), Variant(name)], before: deadline)[0]?.unboxed
  }

  /// Runs a conversation, once more where the service was replaced meanwhile.
  func attempt<Value>(
    before deadline: Deadline,
    _ body: (isolated SecretServiceClient, SecretSession) async throws(BusError) -> Value
  ) async throws(StoreError) -> Value {
    for isLast in [false, true] {
      let (_, session) = try await ready(before: deadline)
      do throws(BusError) {
        return try await body(self, session)
      } catch {
        let failure = note(error)
        guard !isLast, error.isAboutSession, self.session == nil else { throw failure }
      }
    }
    throw .unreachable(reason: "the Secret Service was replaced twice")
  }

  /// Notes a failed call, also for later ones. Returns its error.
  func note(_ error: BusError) -> StoreError {
    switch error {
    case .gone:
      if bus?.isClosed == true { lose() }
      (owner, session) = (nil, nil)
    case .timedOut: waitForLife()
    case .refused where error.isAboutSession: session = nil
    case .refused: break
    }
    return error.storeError
  }

  /// The service hangs: when it answers again, what it told meanwhile is read.
  private func waitForLife() {
    guard probing == nil, let bus else { return }
    probing = Task(executorPreference: loop) { [weak self] in
      _ = try? await bus.call(
        ServiceName.bus, ServiceName.path, "org.freedesktop.DBus.Peer", "Ping", before: nil)
      await self?.lives()
    }
  }

  private func lives() {
    probing = nil
    pump()
  }
}

extension BusError {
  static let plain = "keyhole.PlainSession"
  static let ownService = "keyhole.OwnService"

  var isAboutSession: Bool {
    switch self {
    case .gone: true
    case .refused(let name, _): name == "org.freedesktop.Secret.Error.NoSession"
    case .timedOut: false
    }
  }

  var isMissing: Bool {
    guard case .refused(let name, _) = self else { return false }
    return [
      "org.freedesktop.Secret.Error.NoSuchObject", "org.freedesktop.DBus.Error.UnknownMethod",
      "org.freedesktop.DBus.Error.UnknownObject", "org.freedesktop.DBus.Error.UnknownInterface",
    ].contains(name)
  }

  var storeError: StoreError {
    switch self {
    case .timedOut: .unreachable(reason: "the Secret Service does not answer")
    case .gone(let reason): .unreachable(reason: reason)
    case .refused("org.freedesktop.Secret.Error.IsLocked", _): .locked
    case .refused(Self.plain, _):
      .notPermitted(
        reason:
          "the Secret Service offers no encrypted session; `keyhole mount -o plain-session` takes it for one mount, "
          + "and `keyhole config plain-session true` from now on")
    case .refused(Self.dismissed, _):
      .accessDenied(
        reason:
          "the keyring stayed locked: its prompt was closed, or had no display; `keyhole mount --keep -o keychain=vault` uses Keyhole's own vault"
      )
    case .refused(Self.ownService, _):
      .unreachable(reason: "the Secret Service on the session bus is Keyhole's own, which serves the vault")
    case .refused(Self.noMemory, _): .outOfMemory
    case .refused(Self.noCollection, _): .noCollection
    case .refused where isMissing: .notFound
    case .refused(let name, _): .unreachable(reason: "the Secret Service refused it: \(name)")
    }
  }
}
