import BusServer
import Model
import Platform
import SecretMemory
import SecretServiceProtocol
import Store

/// A connection that has called a method, until it is gone.
struct BusClient {
  /// So many sessions may one client have at a time; with a further one the oldest is closed. SecretStorage opens one for each item
  /// that it reads, and closes none. The key of each takes locked memory, of which others need some: 64 KiB are enough for 500.
  static let mostSessions = 256
  /// So many prompts.
  static let mostPrompts = 64

  /// The process, as rules for programs see it; nil: the bus has not told yet.
  var caller: Caller?
  /// The process as the bus names it. It decides nothing about who gets a secret.
  var observed: Caller.Identity?
  /// Calls that have not been answered, in their order.
  var waiting = CallQueue()
  /// Whether it is among those whose next call has its turn.
  var isReady = false
  /// Calls that change something and are not done, by their numbers. Later calls wait for them.
  var changes: Set<UInt64> = []
  var sessions: Set<UInt64> = []
  var prompts: Set<UInt64> = []
  /// The permits that a person has given in a prompt, or when the call had been answered, for one use each, and until when they hold.
  private(set) var permits: [BusQuestions.Subject: (permit: Permit, end: ContinuousClock.Instant)] = [:]
  let questions = BusQuestions()
  /// Ends the questions for calls that have no reply yet.
  var withdrawals: [UInt64: @Sendable () -> Void] = [:]

  var isIdentified: Bool { caller != nil }

  /// The question says so long.
  private static let permitLife = Duration.seconds(60)

  /// The items of which the person has permitted the client to read the secret.
  var itemsToRead: Set<ItemID> {
    let now = ContinuousClock.now
    return Set(permits.filter { $0.key.operation == .read && $0.value.end > now }.map(\.key.item))
  }

  /// Keeps a permit for the next operation of its kind on the item, and for no other.
  mutating func keep(
    _ permit: Permit, for subject: BusQuestions.Subject, at time: ContinuousClock.Instant = .now
  ) {
    permits[subject] = (permit, time + Self.permitLife)
  }

  /// The permit that was kept for an operation, once.
  mutating func takePermit(
    for subject: BusQuestions.Subject, at time: ContinuousClock.Instant = .now
  ) -> Permit? {
    guard let kept = permits.removeValue(forKey: subject), kept.end > time else { return nil }
    return kept.permit
  }

  /// The vault was locked: nothing that was permitted before holds.
  mutating func dropPermits() { permits = [:] }
}

/// A session of a client.
struct BusSession {
  let client: String
  let cipher: SessionCipher
  /// Whether the client may have this session. The list of the programs that may go without encryption is not known before the
  /// vault was unlocked: until then nothing crosses such a session.
  var isAdmitted = true
}

extension SecretServiceServer {
  /// So many clients may be known at a time.
  private static let mostClients = 10_000
  /// So many calls of a client may wait for their turn.
  private static let mostWaiting = 4_096

  /// Finds out who a connection is with its first call, and has its end reported.
  func identify(_ call: BusMessage) {
    guard clients.count < Self.mostClients else {
      return reply(to: call, with: .tooMany("too many programs use the service"))
    }
    let name = call.sender
    clients[name] = BusClient(waiting: CallQueue(call))
    let rule = Self.rule(for: name)
    connection?.callBus("AddMatch", [.string(rule)]) { _ in }
    // Behind that, so that an end from now on is reported.
    connection?.callBus("GetConnectionCredentials", [.string(name)]) { [weak self] result in
      // The descriptor of the reply is gone afterwards.
      let found = try? result.get().first?.propertyEntries
      self?.assumeIsolated { $0.admit(name, found) }
    }
  }

  /// The call has its turn behind the client's earlier ones.
  func keepWaiting(_ call: BusMessage) {
    guard let count = clients[call.sender]?.waiting.count, count < Self.mostWaiting else {
      return reply(to: call, with: .tooMany("too many calls of the connection wait"))
    }
    clients[call.sender]?.waiting.append(call)
    offerTurn(to: call.sender)
  }

  private static func rule(for name: String) -> String {
    "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
      + "arg0='\(name)'"
  }

  private func admit(_ name: String, _ credentials: [(String, BusValue)]?) {
    guard let credentials else { return forget(name) }
    let observed = Self.identity(credentials)
    clients[name]?.observed = observed.process
    clients[name]?.caller = Caller(observed.forRules)
    offerTurn(to: name)
  }

  /// The process of credentials, and the same as far as rules may rely on it.
  private static func identity(
    _ credentials: [(String, BusValue)]
  ) -> (process: Caller.Identity, forRules: Caller.Identity) {
    var (number, descriptor): (Int32, Int32?) = (0, nil)
    for (name, value) in credentials {
      switch (name, value) {
      case ("ProcessID", .uint32(let process)): number = Int32(clamping: process)
      case ("ProcessFD", .descriptor(let handle)): descriptor = handle
      default: break
      }
    }
    let handle = descriptor.flatMap { ProcessHandle(duplicating: $0, process: number) }
    let process = Caller.Identity(process: number, handle)
    let program = process.executable?.path ?? "?"
    if program.split(separator: "/").last == "xdg-dbus-proxy" {
      return (process, process.withoutProgram(because: "a program in a sandbox, behind \(program)"))
    }
    guard handle == nil, process.executable != nil else { return (process, process) }
    let reason = "the session bus can't vouch for it; its process executes \(process.script ?? program)"
    return (process, process.withoutProgram(because: reason))
  }

  /// The connection is gone: its sessions and prompts end, and questions for it are withdrawn.
  func forget(_ name: String) {
    guard let client = clients.removeValue(forKey: name) else { return }
    for number in client.sessions { sessions[number] = nil }
    for number in client.prompts { prompts.removeValue(forKey: number)?.withdraw() }
    for call in client.waiting.all { connection?.drop(call) }
    for withdraw in client.withdrawals.values { withdraw() }
    connection?.callBus("RemoveMatch", [.string(Self.rule(for: name))]) { _ in }
  }

  func caller(of call: BusMessage) -> Caller {
    clients[call.sender]?.caller ?? Caller(Caller.Identity(process: nil, user: nil, executable: nil))
  }
}

// MARK: - Sessions

extension SecretServiceServer {
  /// So many sessions of all clients together: each has 2 KiB of locked memory. With a further one the oldest is closed of the client
  /// that has the most, so one that opens sessions and leaves them takes none of another one's.
  private static let mostSessions = 1024

  /// OpenSession.
  func openSession(_ call: BusMessage) throws(ProtocolError) -> [BusValue]? {
    guard let algorithm = call.arguments.first?.text else { throw .invalid("no algorithm") }
    switch algorithm {
    case SessionCipher.plainName:
      let isAdmitted = try admitsPlain(call.sender)
      let path = try addSession(.plain, call.sender, isAdmitted: isAdmitted)
      return [.variant(.string("")), .path(path)]
    case SessionCipher.encryptedName:
      guard let input = call.arguments[1].content.bytes else {
        throw .invalid("the input is no array of bytes")
      }
      let key = input.secret.unprotected
      replyLater(to: call) { (server) async throws(ProtocolError) in
        let made = try await server.negotiate(key)
        let path = try server.addSession(made.0, call.sender)
        return [.variant(.bytes(made.1)), .path(path)]
      }
      return nil
    default: throw .notSupported("there is no session algorithm `\(algorithm.prefix(80))`")
    }
  }

  private nonisolated func negotiate(
    _ key: [UInt8]
  ) async throws(ProtocolError) -> (SessionCipher, BusBytes) {
    let result: Result<(SessionCipher, BusBytes), ProtocolError> = await withCheckedContinuation { waiting in
      Background.run {
        waiting.resume(
          returning: Result { () throws(ProtocolError) in
            let made = try SessionCipher.negotiate(key)
            return (made.cipher, try BusBytes(copying: made.output))
          })
      }
    }
    return try result.get()
  }

  private func addSession(
    _ cipher: SessionCipher, _ name: String, isAdmitted: Bool = true
  ) throws(ProtocolError) -> String {
    guard let client = clients[name] else { throw .noSession }
    if client.sessions.count >= BusClient.mostSessions { closeOldestSession(of: name) }
    if sessions.count >= Self.mostSessions,
      let busiest = clients.max(by: { $0.value.sessions.count < $1.value.sessions.count })
    {
      closeOldestSession(of: busiest.key)
    }
    let number = nextNumber()
    sessions[number] = BusSession(client: name, cipher: cipher, isAdmitted: isAdmitted)
    clients[name]?.sessions.insert(number)
    return ServiceObject.session(number).path
  }

  private func closeOldestSession(of name: String) {
    guard let oldest = clients[name]?.sessions.min() else { return }
    sessions[oldest] = nil
    clients[name]?.sessions.remove(oldest)
  }

  func closeSession(_ number: UInt64, _ call: BusMessage) throws(ProtocolError) -> [BusValue] {
    guard sessions[number]?.client == call.sender else { throw .noSession }
    sessions[number] = nil
    clients[call.sender]?.sessions.remove(number)
    return []
  }

  /// The algorithm of a session of the caller.
  func cipher(at path: String?, _ call: BusMessage) throws(ProtocolError) -> SessionCipher {
    guard let path, case .session(let number)? = ServiceObject(path: path), let session = sessions[number],
      session.client == call.sender
    else { throw .noSession }
    // The list may have changed since; while the vault is locked it is not known, and what was admitted stays so.
    let isCurrent = session.isAdmitted && keychain.engine.locking.lockState != .open
    if case .plain = session.cipher, !isCurrent {
      guard try admitsPlain(call.sender) else {
        throw .isLocked(
          "the vault, which has the list of the programs that may have secrets without encryption, is locked; "
            + "`keyhole unlock` opens it")
      }
      sessions[number]?.isAdmitted = true
    }
    return session.cipher
  }

  /// Secrets cross the bus as they are only for programs that the user has named. False: the list, which is sealed in the vault, is
  /// not known yet.
  ///
  /// - Throws: `notSupported` for a program that is not in the list.
  private func admitsPlain(_ name: String) throws(ProtocolError) -> Bool {
    let observed = clients[name]?.observed
    let program = observed?.script ?? observed?.executable?.path
    let allowed = options.plainPrograms()
    let files = Set(allowed.compactMap { FileID($0) })
    let own = [observed?.executable?.file, observed?.script.flatMap { FileID($0) }].compactMap { $0 }
    guard !own.contains(where: files.contains) else { return true }
    guard !allowed.isEmpty || keychain.engine.locking.lockState == .open else { return false }
    throw .notSupported(
      "this service takes secrets over the bus in encrypted sessions only; "
        + "`keyhole allow --plain \((program ?? "PROGRAM").quotedForShell)` lets this program go without")
  }
}

extension BusBytes {
  /// A copy in memory for secrets.
  convenience init(copying bytes: [UInt8]) throws(ProtocolError) {
    do { self.init(try SecretBytes(copying: bytes.span)) } catch {
      throw ProtocolError("org.freedesktop.DBus.Error.NoMemory", "there is not enough locked memory")
    }
  }
}
