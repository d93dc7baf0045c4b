import BusServer
import Model
import SecretMemory
import SecretServiceProtocol
import Store
import Tree

/// A prompt that waits for its client, or for the person.
struct BusPrompt {
  enum State {
    /// The client has not shown it.
    case waits
    /// The person is being asked.
    case isShown
  }

  /// The purpose of a prompt: it is done when the person has agreed.
  enum Purpose {
    /// These paths are unlocked.
    case unlock([String])
    /// The keychain is unlocked, and a collection is made in it.
    case makeCollection(label: String, alias: String)

    /// The result of a prompt that was dismissed.
    var nothing: BusValue {
      switch self {
      case .unlock: .paths([])
      case .makeCollection: .path("/")
      }
    }
  }

  let client: String
  let purpose: Purpose
  var state = State.waits
  /// End the questions that are open.
  var withdrawals: [UInt64: @Sendable () -> Void] = [:]

  /// Ends all questions.
  func withdraw() {
    for end in withdrawals.values { end() }
  }
}

// Locking and unlocking, with prompts.

extension SecretServiceServer {
  /// Lock: the keychain has one lock, which its collections and items have with it.
  func lock(_ call: BusMessage) throws(ProtocolError) -> [BusValue]? {
    let wanted = try objects(of: call).filter { path in
      switch object(at: path) {
      case .collection(.session), .item(.session, _): false
      case .collection(let collection): exists(collection)
      case .item(let collection, let name): (try? storedItem(name, in: collection)) != nil
      default: false
      }
    }
    guard !wanted.isEmpty else { return [.paths([]), .path("/")] }
    replyLater(to: call) { (server) async throws(ProtocolError) in
      try await server.elsewhere { [lock = server.options.lock] () throws(StoreError) in try lock() }
      return [.paths(wanted), .path("/")]
    }
    return nil
  }

  /// So many objects may one call name: each is looked up on the thread of the bus.
  private static let mostObjects = 20_000

  /// The paths that a call names, each once.
  func objects(of call: BusMessage) throws(ProtocolError) -> [String] {
    var seen: Set<String> = []
    let paths = (call.arguments[0].pathList ?? []).filter { seen.insert($0).inserted }
    guard paths.count <= Self.mostObjects else {
      throw .tooMany("a call names at most \(Self.mostObjects) objects")
    }
    return paths
  }

  /// Unlock: what is open already is in the reply, the rest is the prompt's.
  func unlock(_ call: BusMessage) throws(ProtocolError) -> [BusValue]? {
    let paths = try objects(of: call)
    let closed = paths.filter { isClosed($0, for: call) }
    let others = Set(closed)
    let open = paths.filter { path in !others.contains(path) && isKnown(path) }
    guard !closed.isEmpty else { return [.paths(open), .path("/")] }
    let locking = keychain.engine.locking
    guard locking.lockState == .open || locking.needsPassphrase else {
      replyLater(to: call) { (server) async throws(ProtocolError) in
        try await server.openWithoutPassphrase()
        return try server.unlock(call) ?? [.paths([]), .path("/")]
      }
      return nil
    }
    return [.paths(open), .path(try addPrompt(.unlock(closed), call))]
  }

  /// The path of a new prompt.
  func addPrompt(_ purpose: BusPrompt.Purpose, _ call: BusMessage) throws(ProtocolError) -> String {
    guard let client = clients[call.sender], client.prompts.count < BusClient.mostPrompts else {
      throw .tooMany("the connection has too many prompts; dismiss some")
    }
    let number = nextNumber()
    prompts[number] = BusPrompt(client: call.sender, purpose: purpose)
    clients[call.sender]?.prompts.insert(number)
    return ServiceObject.prompt(number).path
  }

  func openWithoutPassphrase() async throws(ProtocolError) {
    try await elsewhere { [keychain] () throws(StoreError) in
      do { try keychain.unlock(SecretBytes()) } catch let error as StoreError { throw error } catch {
        throw .outOfMemory
      }
    }
  }

  private func isKnown(_ path: String) -> Bool {
    switch object(at: path) {
    case .collection(let collection): exists(collection)
    case .item(.session, let name): memory[name] != nil
    case .item(let collection, let name): (try? storedItem(name, in: collection)) != nil
    case .service, .session, .prompt, nil: false
    }
  }

  private func isClosed(_ path: String, for call: BusMessage) -> Bool {
    switch object(at: path) {
    case .collection(.session), .item(.session, _): return false
    case .collection(let collection):
      // Which further ones there are is not known before the first unlock.
      let lock = keychain.engine.locking.lockState
      return lock == .sealed || lock == .locked && exists(collection)
    case .item(let collection, let name):
      guard keychain.engine.locking.lockState != .sealed else { return true }
      guard let item = try? storedItem(name, in: collection) else { return false }
      return !isOpen(item, for: call)
    default: return false
    }
  }
}

// MARK: - Prompts

extension SecretServiceServer {
  func answerPrompt(_ call: BusMessage, _ number: UInt64) throws(ProtocolError) -> [BusValue]? {
    guard let prompt = prompts[number] else { throw .noObject }
    guard call.member == "Prompt" else {
      prompt.withdraw()
      complete(number, dismissed: true, prompt.purpose.nothing)
      return []
    }
    guard prompt.state == .waits else { throw .denied("the prompt is shown already") }
    prompts[number]?.state = .isShown
    Task(executorPreference: loop) { await self.show(number, prompt, call) }
    return []
  }

  private func show(_ number: UInt64, _ prompt: BusPrompt, _ call: BusMessage) async {
    switch prompt.purpose {
    case .unlock(let objects): await unlock(objects, call, number)
    case .makeCollection(let label, let alias):
      await openKeychain(for: "keychain", call, number: number)
      // The client may have dismissed it meanwhile; the further collections can be changed while the vault is locked.
      guard prompts[number] != nil, keychain.engine.locking.lockState == .open,
        let made = try? await makeCollection(label, alias)
      else {
        return complete(number, dismissed: true, prompt.purpose.nothing)
      }
      complete(number, dismissed: false, .path(ServiceObject.collection(made).path))
    }
  }

  private func unlock(_ objects: [String], _ call: BusMessage, _ number: UInt64) async {
    if keychain.engine.locking.lockState != .open, objects.contains(where: { isLocked($0) }) {
      let path = objects.first.flatMap { treePath(of: $0) } ?? "keychain"
      await openKeychain(for: path, call, number: number)
    }
    if prompts[number] != nil { await ask(about: objects, call, number) }
    let open = objects.filter { isKnown($0) && !isClosed($0, for: call) }
    complete(number, dismissed: open.isEmpty, .paths(open))
  }

  /// Whether the keychain's lock keeps it closed.
  private func isLocked(_ path: String) -> Bool {
    guard let item = storedItem(at: path) else { return true }
    return !keychain.engine.locking.isAccessible(item)
  }

  private func treePath(of path: String) -> String? {
    storedItem(at: path).map { FileTree.path(of: $0.identity) }
  }

  /// nil: it is no path of an item of the keychain.
  private func storedItem(at path: String) -> Item? {
    guard case .item(let collection, let name)? = object(at: path), collection != .session else { return nil }
    return try? storedItem(name, in: collection)
  }

  /// Emits Completed, once.
  private func complete(_ number: UInt64, dismissed: Bool, _ result: BusValue) {
    guard let prompt = prompts.removeValue(forKey: number) else { return }
    clients[prompt.client]?.prompts.remove(number)
    let interface = ServiceObject.prompt(number).interface
    connection?.emit(
      ServiceObject.prompt(number).path, interface, "Completed",
      [.bool(dismissed), .variant(result)])
  }

  /// Has the person asked for the passphrase, and waits. Where no dialog can be shown, the request is listed for
  /// `keyhole approve`, and this returns at once.
  func openKeychain(for path: String, _ call: BusMessage, number: UInt64) async {
    guard keychain.engine.locking.needsPassphrase else { return (try? await openWithoutPassphrase()) ?? () }
    let caller = caller(of: call)
    guard let request = keychain.unlockRequest(for: path, by: caller) else { return }
    let key = nextNumber()
    let isOpen: Bool = await withCheckedContinuation { waiting in
      let answer = FirstAnswer(waiting)
      follow(key, of: number, call.sender) {
        request.withdraw()
        answer.give(false)
      }
      request.start(onListed: { [weak self] in
        // It waits on for the person, without the client.
        self?.keep(key, of: number, call.sender)
        answer.give(false)
      }) { outcome in answer.give(outcome == .unlocked) }
      endIfGone(key, call.sender, { request.withdraw() }, { answer.give(false) })
    }
    if isOpen { index = nil }
    follow(key, of: number, call.sender, nil)
  }

  /// The question `key` ends with the prompt, or with the client.
  private func follow(
    _ key: UInt64, of prompt: UInt64, _ client: String, _ withdraw: (@Sendable () -> Void)?
  ) {
    prompts[prompt]?.withdrawals[key] = withdraw
    clients[client]?.withdrawals[key] = withdraw
  }

  private func endIfGone(
    _ key: UInt64, _ client: String, _ withdraw: () -> Void, _ answer: () -> Void
  ) {
    guard clients[client] == nil else { return }
    withdraw()
    answer()
  }

  /// The request is listed, and stays so when the client goes.
  private nonisolated func keep(_ key: UInt64, of prompt: UInt64, _ client: String) {
    Task(executorPreference: loop) { await self.follow(key, of: prompt, client, nil) }
  }

  /// Has the person asked about items with flags or rules, together, and keeps the permits for the client.
  private func ask(about paths: [String], _ call: BusMessage, _ number: UInt64) async {
    await withTaskGroup(of: Void.self) { group in
      for path in paths {
        group.addTask(executorPreference: loop) { await self.askForOne(path, call, number) }
      }
    }
  }

  private func askForOne(_ path: String, _ call: BusMessage, _ number: UInt64) async {
    guard let item = storedItem(at: path),
      keychain.engine.locking.isAccessible(item), !isOpen(item, for: call),
      let permission = try? permission(for: item, to: .read, call)
    else { return }
    switch permission {
    case .given(let permit): keep(permit, for: .init(item: item.id, operation: .read), call.sender)
    case .asked(let request): await ask(request, about: item, call.sender, number)
    case .askedTogether: return
    }
  }

  /// Returns at once where the request is listed: the permit is kept when the person approves it later, or for the next process
  /// that does the same.
  private func ask(
    _ request: PermissionRequest, about item: Item, _ client: String, _ number: UInt64
  ) async {
    let (key, subject) = (nextNumber(), BusQuestions.Subject(item: item.id, operation: .read))
    guard let questions = clients[client]?.questions, questions.begin(key, subject) else { return }
    await withCheckedContinuation { waiting in
      let answer = FirstAnswer<Void>(waiting)
      follow(key, of: number, client) {
        request.withdraw()
        questions.end(key)
        answer.give(())
      }
      request.start(onListed: { [weak self] in
        _ = questions.list(key)
        self?.keep(key, of: number, client)
        request.keepForNext()
        answer.give(())
      }) { [weak self] outcome in
        questions.end(key)
        guard let self, case .success(let permit) = outcome else {
          answer.give(())
          return
        }
        Task(executorPreference: loop) {
          await self.keep(permit, for: subject, client)
          answer.give(())
        }
      }
      endIfGone(key, client, { request.withdraw() }, { answer.give(()) })
    }
    follow(key, of: number, client, nil)
  }

  func keep(_ permit: Permit, for subject: BusQuestions.Subject, _ client: String) {
    clients[client]?.keep(permit, for: subject)
  }
}
