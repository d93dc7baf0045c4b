import Model
import Platform
import SecretMemory
import Store
import Synchronization

/// Answers one request, on a thread of its own: a person may be asked, or the program stay for long.
struct ControlSession {
  let channel: MessageChannel
  /// nil: the connection needed no identification.
  let peer: ControlPeer?
  let service: any ControlService
  let unlocking: SerialTurns
  /// Dialogs of `keyhole approve`.
  let approving: WaitingThreads
  let batches: BatchPlace

  /// Returns when the request is answered, or the other side is gone.
  func serve(_ request: Message) {
    do throws(StoreError) {
      guard let reply = try reply(to: request) else { return }
      channel.send(reply)
    } catch {
      channel.send(.failed(error))
    }
  }

  /// nil: it was sent already.
  private func reply(to request: Message) throws(StoreError) -> ControlMessage? {
    switch request.content {
    case .unlock: try unlock(request)
    case .fetchPath(let item): return .path(try service.path(of: item))
    case .pauseReplay: try pauseReplay()
    case .identify(let program):
      IdentifiedCallers.remember(try identified().caller.identity(), starting: program)
    case .permit(let item, let operation, let secrets): try permit(item, operation, secrets)
    case .permitRules(let path): try permitRules(at: path)
    case .fetchRequests: return .requests(try keychain().listedRequests().map(WaitingRequest.init))
    case .fetchStatus: return .status(service.status)
    case .askSuites(.watch):
      try SuiteWatcher(channel, try settings()).run()
      return nil
    case .askSuites(let request):
      return try SuiteServer(store: settings(), isReadOnly: service.isReadOnly).reply(to: request)
    case .deny(let number): try keychain().deny(number)
    case .catchUp(let suites):
      let _: Void = try channel.fetch { [service] done in service.catchUp(with: suites) { done(.success(())) }
      }
    case .approve(let number, let scope): try approve(number, scope)
    case .askToUnlock(let path): return try askToUnlock(for: path)
    default:
      try serveKeychain(request)
      return nil
    }
    return .done
  }

  private func settings() throws(StoreError) -> SettingsStore {
    guard let settings = service.settings else { throw .notFound }
    return settings
  }

  private func identified() throws(StoreError) -> ControlPeer {
    guard let peer else { throw .accessDenied(reason: "this request needs an identified process") }
    return peer
  }

  private func keychain() throws(StoreError) -> KeychainStore {
    guard let keychain = service.keychain else { throw .notFound }
    return keychain
  }

  private func serveKeychain(_ request: Message) throws(StoreError) {
    switch request.content {
    case .beginBatch(let items):
      try BatchServer(channel, try keychain(), service, try identified(), batches).serve(rewriting: items)
    case .finishBatches: try finishBatches()
    default: try KeychainServer(channel, try keychain(), service, try identified()).serve(request)
    }
  }

  private func finishBatches() throws(StoreError) {
    let _: Void = try channel.fetch { done in batches.whenFree { done(.success(())) } }
    channel.send(.done)
  }

  private func pauseReplay() throws(StoreError) {
    let isPaused = try MessageChannel.makeWakePipe()
    service.pauseReplay { isPaused.wake() }
    _ = channel.wait(or: isPaused)
    // The end of the connection is what the program waits with.
    if channel.send(.replayPaused) { _ = channel.wait() }
    service.resumeReplay()
  }
}

// MARK: - Unlocking

extension ControlSession {
  /// A wrong passphrase takes longer each time, and the program has to know meanwhile that this process answers.
  private func unlock(_ request: Message) throws(StoreError) {
    let _: Void = try channel.fetch { (done) throws(StoreError) in
      let isTaken = unlocking.run { [service] in
        guard let passphrase = request.takeSecret() else { return done(.failure(WireReader.unreadable)) }
        done(Result { () throws(StoreError) in try service.unlock(passphrase) })
      }
      guard isTaken else { throw .tooManyOpen }
    }
  }
}

// MARK: - Requests that wait

extension ControlSession {
  /// Has the person asked at the terminal of the process, or in a window.
  private func approve(_ number: UInt32, _ scope: ApprovalScope) throws(StoreError) {
    let (keychain, approver) = (try keychain(), try identified().caller.identity())
    let withdrawal = Withdrawal()
    do throws(StoreError) {
      let _: Void = try channel.fetch { (done) throws(StoreError) in
        let isTaken = approving.run {
          done(
            Result { () throws(StoreError) in
              try keychain.approve(number, scope.answer, by: approver, withdrawal)
            })
        }
        guard isTaken else { throw .tooManyOpen }
      }
    } catch {
      withdrawal.withdraw()
      throw error
    }
  }
}

// MARK: - Permissions

extension ControlSession {
  /// The longest path that a dialog shows, in characters.
  private static let longestPath = 300

  /// Has a person asked for the passphrase, as an open of a locked secret on the mount does.
  private func askToUnlock(for path: String) throws(StoreError) -> ControlMessage {
    let (keychain, peer) = (try keychain(), try identified())
    if let request = keychain.unlockRequest(for: String(path.prefix(Self.longestPath)), by: peer.caller) {
      do throws(StoreError) {
        let _: Void = try channel.fetch { done in
          request.start { done($0 == .unlocked ? .success(()) : .failure(request.failure ?? .locked)) }
        }
      } catch {
        request.withdraw()
        throw error
      }
    }
    let state = KeychainState(of: keychain.engine)
    guard state.lock == .open else { throw keychain.unlockRefusal ?? .locked }
    return .state(state)
  }
}

extension ControlSession {
  private func permit(
    _ id: ItemID, _ operation: AccessOperation, _ secrets: ItemSecrets
  ) throws(StoreError) {
    let (keychain, peer) = (try keychain(), try identified())
    // The program may have made it a moment ago.
    try keychain.refresh()
    guard let path = try service.path(of: id) else { throw .notFound }
    let permission = try keychain.permission(for: id, to: operation, secrets, path: path, by: peer.caller)
    let permit = try permission.fetch(reportingTo: channel)
    // An item's own password leaves this process on no road: such items are opened here (`fetchSecret`).
    guard permit.password == nil else {
      throw .unsupported(reason: "the mount's process opens items that have a password of their own")
    }
    try peer.check()
  }

  private func permitRules(at path: String) throws(StoreError) {
    let (keychain, peer) = (try keychain(), try identified())
    try keychain.refresh()
    let permission =
      if let key = ConfigurationKey(path: path) {
        try keychain.permission(toChange: key, by: peer.caller)
      } else {
        try keychain.permission(toChangeRulesOf: service.scope(at: path), path: path, by: peer.caller)
      }
    _ = try permission.fetch(reportingTo: channel)
    try peer.check()
  }
}
