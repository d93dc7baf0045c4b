import BusServer
import Model
import Platform
import SecretMemory
import SecretServiceProtocol
import Store
import Synchronization
import Tree

// Secrets: who gets them, and how they cross the bus.

extension SecretServiceServer {
  /// GetSecret.
  func getSecret(
    _ call: BusMessage, _ collection: ServiceObject.Collection, _ name: String
  ) throws(ProtocolError) -> [BusValue]? {
    guard let session = call.arguments[0].path else { throw .noSession }
    let cipher = try cipher(at: session, call)
    if case .session = collection {
      guard let entry = memory[name] else { throw .noObject }
      return [try Self.structure(entry.secret.secret, entry.contentType, session, cipher)]
    }
    let item = try storedItem(name, in: collection)
    // Answer at once while nothing is being changed.
    if !keychain.mayBlock, !keychain.isChanging, let permit = try permitWithoutQuestion(for: item, call) {
      let secret = try here { () throws(StoreError) -> SecretBytes in try keychain.secret(of: item, permit) }
      return [try Self.structure(secret, StoredAttributes.contentType(of: item), session, cipher)]
    }
    replyLater(to: call) { (server) async throws(ProtocolError) in
      let permit = try await server.permit(for: item, to: .read, call)
      let secret = try await server.elsewhere {
        [keychain = server.keychain] () throws(StoreError) -> BusBytes in
        BusBytes(try keychain.secret(of: item.id, permit))
      }
      // The session may be gone.
      let cipher = try server.cipher(at: session, call)
      return [try Self.structure(secret.secret, StoredAttributes.contentType(of: item), session, cipher)]
    }
    return nil
  }

  /// GetSecrets: those of items that are open for the client. The others are left out, and paths of no item.
  func getSecrets(_ call: BusMessage) throws(ProtocolError) -> [BusValue]? {
    guard let session = call.arguments[1].path else { throw .noSession }
    let paths = try objects(of: call)
    let cipher = try cipher(at: session, call)
    var entries: [BusValue] = []
    for path in paths {
      guard case .item(let collection, let name)? = object(at: path) else { continue }
      if case .session = collection {
        guard let entry = memory[name] else { continue }
        let secret = try Self.structure(entry.secret.secret, entry.contentType, session, cipher)
        entries.append(.entry(.path(path), secret))
        continue
      }
      guard let item = try? storedItem(name, in: collection), isOpen(item, for: call),
        let permit = try permitWithoutQuestion(for: item, call)
      else { continue }
      let secret = try here { () throws(StoreError) -> SecretBytes in try keychain.secret(of: item, permit) }
      let structure = try Self.structure(secret, StoredAttributes.contentType(of: item), session, cipher)
      entries.append(.entry(.path(path), structure))
    }
    return [.array(entries, of: "{o(oayays)}")]
  }

  /// SetSecret.
  func setSecret(
    _ call: BusMessage, _ collection: ServiceObject.Collection, _ name: String
  ) throws(ProtocolError) -> [BusValue]? {
    try requireWritable()
    let (secret, type) = try secret(call.arguments[0], call)
    if case .session = collection {
      guard var entry = memory[name] else { throw .noObject }
      (entry.secret, entry.contentType, entry.modified) = (secret, type, Timestamp.now.seconds)
      try memory.requireRoom(for: entry, as: name)
      memory[name] = entry
      emit(.session, "ItemChanged", ServiceObject.item(.session, name).path)
      return []
    }
    let item = try storedItem(name, in: collection)
    replyAfterChange(to: call) { (server) async throws(ProtocolError) in
      let permit = try await server.permit(for: item, to: .write, call)
      try await server.elsewhere { [keychain = server.keychain] () throws(StoreError) -> Void in
        try keychain.rewrite(item.id, readingSecret: false, permit, origin: .indirect) {
          (item, bytes) throws(StoreError) in
          StoredAttributes.note(type, in: &item)
          item.modified = .now
          try bytes.replace(with: secret)
        }
      }
      return []
    }
    return nil
  }

  /// `(oayays)`.
  private static func structure(
    _ secret: borrowing SecretBytes, _ contentType: String, _ session: String, _ cipher: SessionCipher
  ) throws(ProtocolError) -> BusValue {
    let message = try cipher.encode(secret)
    let parameters = BusValue.ordinaryBytes(message.parameters)
    // Encrypted it takes no locked memory, of which a client that asks for many would need more than there is.
    let value =
      switch cipher {
      case .plain: BusValue.bytes(BusBytes(message.takeValue()))
      case .encrypted: BusValue.ordinaryBytes(message.value.unprotected)
      }
    return .structure([.path(session), parameters, value, .string(contentType)])
  }
}

// MARK: - Permits

extension SecretServiceServer {
  /// nil: a person has to be asked.
  private func permitWithoutQuestion(for item: Item, _ call: BusMessage) throws(ProtocolError) -> Permit? {
    // The rules as they are now come first: one that keeps the program out ends what a person has permitted.
    switch try permission(for: item, to: .read, call) {
    case .given(let permit): return permit
    case .asked, .askedTogether: return takePermit(for: item, to: .read, call)
    }
  }

  private func takePermit(for item: Item, to operation: AccessOperation, _ call: BusMessage) -> Permit? {
    clients[call.sender]?.takePermit(for: .init(item: item.id, operation: operation))
  }

  func permission(
    for item: Item, to operation: AccessOperation, _ call: BusMessage
  ) throws(ProtocolError) -> Permission {
    let caller = caller(of: call)
    return try here { () throws(StoreError) in
      try keychain.permission(
        for: item, to: operation, path: FileTree.path(of: item.identity), by: caller)
    }
  }

  /// The right to an operation; waits for the person where one has to be asked. A client that is gone withdraws the question.
  func permit(
    for item: Item, to operation: AccessOperation, _ call: BusMessage
  ) async throws(ProtocolError) -> Permit {
    switch try permission(for: item, to: operation, call) {
    case .given(let permit): return permit
    case .asked(let request):
      if let permit = takePermit(for: item, to: operation, call) { return permit }
      // Other calls of the client don't wait for the person.
      endChange(call)
      let subject = BusQuestions.Subject(item: item.id, operation: operation)
      let outcome = try await wait(for: request, about: subject, call.sender)
      do throws(StoreError) { return try outcome.get() } catch { throw ProtocolError(error) }
    case .askedTogether: throw .failed("the question can't be asked")
    }
  }

  /// So many calls of a client may wait for the person.
  private static let mostWaiting = 256

  private func wait(
    for request: PermissionRequest, about subject: BusQuestions.Subject, _ client: String
  ) async throws(ProtocolError) -> PermissionRequest.Outcome {
    guard let known = clients[client], known.withdrawals.count < Self.mostWaiting else {
      throw .tooMany("too many calls of the connection wait for the user")
    }
    let (key, questions) = (nextNumber(), known.questions)
    guard questions.begin(key, subject) else { throw .isListed }
    let outcome: PermissionRequest.Outcome? = await withCheckedContinuation { waiting in
      let answer = FirstAnswer<PermissionRequest.Outcome?>(waiting)
      clients[client]?.withdrawals[key] = {
        request.withdraw()
        answer.give(.failure(.interrupted))
      }
      request.start(onListed: { [deadlines] in
        deadlines.run(after: questions.list(key)) {
          request.keepForNext()
          answer.give(nil)
        }
      }) { [weak self] outcome in
        questions.end(key)
        if answer.give(outcome) { return }
        // The call has been answered: the next one has the permit.
        guard let self, case .success(let permit) = outcome else { return }
        Task(executorPreference: loop) { await self.keep(permit, for: subject, client) }
      }
    }
    clients[client]?.withdrawals[key] = nil
    guard let outcome else { throw .isListed }
    return outcome
  }
}

extension ProtocolError {
  /// The request waits for `keyhole approve`, and the call does not.
  fileprivate static let isListed = isLocked(
    "the user has to approve it: `keyhole requests` lists the request, `keyhole approve` takes it")
}

/// Resumes a continuation once, with whatever comes first.
final class FirstAnswer<Value: Sendable>: Sendable {
  private let continuation: Mutex<CheckedContinuation<Value, Never>?>

  init(_ continuation: CheckedContinuation<Value, Never>) {
    self.continuation = Mutex(continuation)
  }

  /// False: another value was first.
  @discardableResult
  func give(_ value: Value) -> Bool {
    guard let waiting = continuation.withLock({ $0.take() }) else { return false }
    waiting.resume(returning: value)
    return true
  }
}
