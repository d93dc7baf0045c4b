import Dispatch
import Fuse
import Model
import Platform
import Store
import Tree

// Operations that may wait: for a disk or another process, and for a person.
extension TreeFileSystem {
  /// Runs `work` where it may wait, on this thread if that is a short time and nothing else is asked for, and answers when it is done;
  /// `onAbandoned` gets the result where the caller has gone away meanwhile.
  ///
  /// A caller that is interrupted gets EINTR only if the wait is a long one: a window that changes its
  /// size must not make a save look failed.
  func performAsync<Answer: ~Copyable & Sendable, Value: Sendable>(
    _ reply: consuming Reply<Answer>, of subject: Subject,
    _ work: @escaping @Sendable () throws(StoreError) -> Value,
    answer: @escaping @Sendable (consuming Reply<Answer>, Value) -> Void,
    onAbandoned: @escaping @Sendable (Value) -> Void = { _ in }
  ) {
    let (cause, isOfSecrets) = cause(ofWaitAt: subject.node)
    let mayStay = cause == .disk || cause == .server
    let reading = reply.reading
    let patience = DispatchTimeInterval.milliseconds(cause == .process ? 20 : 500)
    let parked = reply.park { parked in
      Background.run(after: patience) {
        _ = parked.claim()?.fail(.EINTR)
      }
    }
    let asked = ContinuousClock.now
    let perform: @Sendable () -> Void = { [self] in
      let began = ContinuousClock.now
      let result: Result<Value, StoreError>
      do throws(StoreError) { result = .success(try work()) } catch { result = .failure(error) }
      let duration = began.duration(to: .now)
      waiting.note(duration, ofSecrets: isOfSecrets)
      delays.note(asked.duration(to: .now), path: path(of: subject))
      guard let reply = parked.claim() else {
        if case .success(let value) = result { onAbandoned(value) }
        return
      }
      switch result {
      case .success(let value): answer(reply, value)
      case .failure(let error): fail(reply, error, subject)
      }
    }
    let isRun =
      mayStay
      && waiting.runHere(
        ofSecrets: isOfSecrets, hasOthers: { reading.hasUnreadRequest }, handOver: reading.handOver, perform)
    guard !isRun else { return }
    if !waiting.run(cause, perform), let reply = parked.claim() { fail(reply, .tooManyOpen, subject) }
  }

  /// The same for work without a result.
  func performAsync(
    _ reply: consuming EmptyReply, of subject: Subject,
    _ work: @escaping @Sendable () throws(StoreError) -> Void
  ) {
    performAsync(reply, of: subject, work) { reply, _ in reply.succeed() }
  }

  private func cause(ofWaitAt node: NodeID) -> (cause: WaitingOperations.Cause, isOfSecrets: Bool) {
    guard let node = tree.node(node.rawValue) else { return (.disk, false) }
    guard !tree.asksServers(using: node) else { return (.server, node.isInKeychain) }
    guard tree.mayWait(using: node) else { return (.disk, node.isInKeychain) }
    return (tree.mayBlock(using: node) ? .process : .vault, node.isInKeychain)
  }

  /// Whether opening a file, or making one in a directory, may wait.
  func mayWait(using node: NodeID) -> Bool {
    tree.node(node.rawValue).map(tree.mayWait(using:)) ?? false
  }

  /// Whether looking at the contents of a directory may wait.
  func mayBlock(lookingIn directory: NodeID) -> Bool {
    tree.node(directory.rawValue).map(tree.mayBlock(lookingIn:)) ?? false
  }

  /// Returns when all operations that were asked for before the mount went are done.
  public func finish() {
    waiting.finish()
  }
}

extension TreeFileSystem {
  /// Runs `body` with the permit that an operation takes; where a person has to be asked first, once they have
  /// agreed. Meanwhile the reply is parked, and delays no other request. An interrupt withdraws the question.
  ///
  /// While the keychain is locked, a person is asked for its passphrase, and `permission` runs again once it is open.
  /// `flags`: open(2)'s; with O_NONBLOCK no person is asked.
  func withAccess<Answer: ~Copyable & Sendable>(
    _ reply: consuming Reply<Answer>, of subject: Subject, flags: Int32 = 0, by caller: Caller,
    _ permission: @escaping @Sendable () throws(StoreError) -> Permission?,
    _ body: @escaping @Sendable (consuming Reply<Answer>, Permit?) -> Void
  ) {
    let needed: Permission?
    do throws(StoreError) { needed = try permission() } catch {
      guard !CallFlags.isNonBlocking(flags) else { return fail(reply, error, subject) }
      return unlock(reply, of: subject, after: error, by: caller) { [self] reply in
        withAccessOfOpen(reply, of: subject, permission, body)
      }
    }
    give(needed, reply, of: subject, flags, body)
  }

  /// The same after a person has unlocked the keychain: they are not asked for it twice.
  private func withAccessOfOpen<Answer: ~Copyable & Sendable>(
    _ reply: consuming Reply<Answer>, of subject: Subject,
    _ permission: () throws(StoreError) -> Permission?,
    _ body: @escaping @Sendable (consuming Reply<Answer>, Permit?) -> Void
  ) {
    let needed: Permission?
    do throws(StoreError) { needed = try permission() } catch { return fail(reply, error, subject) }
    give(needed, reply, of: subject, 0, body)
  }

  private func give<Answer: ~Copyable & Sendable>(
    _ permission: Permission?, _ reply: consuming Reply<Answer>, of subject: Subject, _ flags: Int32,
    _ body: @escaping @Sendable (consuming Reply<Answer>, Permit?) -> Void
  ) {
    switch permission {
    case .none: body(reply, nil)
    case .given(let permit): body(reply, permit)
    case .asked(let request) where CallFlags.isNonBlocking(flags):
      request.noteUnasked()
      fail(reply, .wouldWait, subject)
    case .asked(let request): ask(reply, of: subject, request, body)
    case .askedTogether(let group) where CallFlags.isNonBlocking(flags):
      group.noteUnasked()
      fail(reply, .wouldWait, subject)
    case .askedTogether(let group): ask(reply, of: subject, group, body)
    }
  }

  /// Has a person asked for the passphrase after an operation failed with `locked`, and runs `body` once the keychain is
  /// open. Any other error, and one where no person is to be asked, is the answer.
  func unlock<Answer: ~Copyable & Sendable>(
    _ reply: consuming Reply<Answer>, of subject: Subject, after error: StoreError, by caller: Caller,
    _ body: @escaping @Sendable (consuming Reply<Answer>) -> Void
  ) {
    guard error == .locked, let keychain = tree.keychain else { return fail(reply, error, subject) }
    guard let request = keychain.unlockRequest(for: path(of: subject), by: caller) else {
      return fail(reply, keychain.unlockRefusal ?? error, subject)
    }
    let parked = reply.park { parked in
      request.withdraw()
      _ = parked.claim()?.fail(.EINTR)
    }
    request.start { [self] outcome in
      guard let reply = parked.claim() else { return }
      switch outcome {
      case .unlocked: body(reply)
      case .stillLocked(let reason):
        refusals.note(path: path(of: subject), reason: "\(error.message) (\(reason))", isByLock: true)
        reply.fail(Errno(error))
      }
    }
  }

  private func ask<Answer: ~Copyable & Sendable>(
    _ reply: consuming Reply<Answer>, of subject: Subject, _ group: PermissionGroup,
    _ body: @escaping @Sendable (consuming Reply<Answer>, Permit?) -> Void
  ) {
    let parked = reply.park { parked in
      group.withdraw()
      _ = parked.claim()?.fail(.EINTR)
    }
    group.start { [self] outcome in
      guard let reply = parked.claim() else { return }
      switch outcome {
      case .success(let permits): body(reply, Permit(joining: permits))
      case .failure(let error): fail(reply, error, subject)
      }
    }
  }

  private func ask<Answer: ~Copyable & Sendable>(
    _ reply: consuming Reply<Answer>, of subject: Subject, _ request: PermissionRequest,
    _ body: @escaping @Sendable (consuming Reply<Answer>, Permit?) -> Void
  ) {
    let parked = reply.park { parked in
      request.withdraw()
      _ = parked.claim()?.fail(.EINTR)
    }
    request.start { [self] outcome in
      guard let reply = parked.claim() else { return }
      switch outcome {
      case .success(let permit): body(reply, permit)
      case .failure(let error): fail(reply, error, subject)
      }
    }
  }
}
