import Model
import Platform
import Synchronization

extension AccessController {
  /// How long requests are collected before they become one dialog.
  private static let collecting = Duration.milliseconds(40)

  private enum Place {
    case firstInQueue
    case behind
    case withdrawn
    case locked
    case tooMany
  }

  func ask(_ request: PermissionRequest) {
    if let permit = reusedPermit(for: request) { return end(request, with: .success(permit), .reused) }
    let queue = DialogQueue(request.subject.caller)
    let place = place(request, in: queue)
    switch place {
    case .withdrawn: return
    case .locked: return end(request, with: .failure(.locked), .locked)
    case .tooMany: return end(request, with: .failure(.tooManyOpen), .impossible)
    case .firstInQueue, .behind: break
    }
    deadlines.run(after: .seconds(options.timeout)) {
      [weak self, weak request] in
      if let request { self?.end(request, with: .failure(.timedOut), .timedOut) }
    }
    guard case .firstInQueue = place else { return }
    deadlines.run(after: Self.collecting) { [self] in
      if !dialogs.run({ self.serve(queue) }) { turnAway(queue) }
    }
  }

  private func place(_ request: PermissionRequest, in queue: DialogQueue) -> Place {
    state.withLock { state in
      // Since it was started; a withdrawal from now on finds it here.
      guard !request.isWithdrawn else { return .withdrawn }
      guard request.subject.outlastsLock || request.lockCount == state.lockCount else { return .locked }
      let count =
        state.waiting.values.reduce(0) { $0 + $1.count }
        + state.open.values.reduce(0) { $0 + $1.requests.count }
      guard count < Self.mostWaiting else { return .tooMany }
      if let dialog = state.open[queue], dialog.requests.contains(where: { $0.isSame(as: request) }) {
        state.open[queue]?.requests.append(request)
        return .behind
      }
      let isFirst = state.waiting[queue] == nil
      state.waiting[queue, default: []].append(request)
      return isFirst ? .firstInQueue : .behind
    }
  }

  /// There are too many dialogs already.
  private func turnAway(_ queue: DialogQueue) {
    let waiting = state.withLock { $0.waiting.removeValue(forKey: queue) ?? [] }
    for request in waiting { end(request, with: .failure(.tooManyOpen), .impossible) }
  }

  func withdraw(_ request: PermissionRequest) {
    remove(request)
    note(request, .withdrawn)
  }

  func end(
    _ request: PermissionRequest, with outcome: PermissionRequest.Outcome, _ decision: AccessEvent.Decision
  ) {
    if request.finish(outcome) { note(request, decision) }
    remove(request)
  }

  /// The request does not wait any more; a dialog without a request is closed.
  private func remove(_ request: PermissionRequest) {
    let queue = DialogQueue(request.subject.caller)
    let withdrawal = state.withLock { state -> Withdrawal? in
      state.waiting[queue]?.removeAll { $0 === request }
      state.unlist(request)
      guard state.open[queue]?.requests.contains(where: { $0 === request }) == true else { return nil }
      state.open[queue]?.requests.removeAll { $0 === request }
      return state.open[queue]?.requests.isEmpty == true ? state.open[queue]?.withdrawal : nil
    }
    withdrawal?.withdraw()
  }

  /// One dialog after the other, until no request waits here.
  private func serve(_ queue: DialogQueue) {
    while let dialog = openDialog(queue) {
      let answer = ask(dialog)
      let waiting = state.withLock { state in
        defer { state.open[queue] = nil }
        return state.open[queue]?.requests ?? []
      }
      guard !dialog.withdrawal.isWithdrawn else { continue }
      if case .impossible(let reason) = answer, list(dialog, waiting, because: reason) { continue }
      settle(answer, asked: dialog.requests, waiting: waiting)
    }
  }

  /// nil: no request waits any more.
  private func openDialog(_ queue: DialogQueue) -> Dialog? {
    settleAnswered(queue)
    return state.withLock { state in
      guard let first = state.waiting[queue]?.first else {
        state.waiting[queue] = nil
        return nil
      }
      let group = state.waiting[queue]?.filter { $0 === first || $0.belongs(with: first) } ?? []
      state.waiting[queue]?.removeAll { request in group.contains { $0 === request } }
      let dialog = Dialog(requests: group, withdrawal: Withdrawal())
      state.open[queue] = dialog
      return dialog
    }
  }

  /// Settles the requests that the last answer has decided.
  private func settleAnswered(_ queue: DialogQueue) {
    for request in state.withLock({ $0.waiting[queue] ?? [] }) {
      if let permit = reusedPermit(for: request) {
        end(request, with: .success(permit), .reused)
      } else if isClosed(request.subject) {
        end(request, with: .failure(.accessDenied(reason: "it was refused lately")), .closed)
      }
    }
  }

  private func ask(_ dialog: Dialog) -> Answer {
    ask(question(dialog.requests), dialog.requests[0], dialog.withdrawal)
  }

  /// Asks until a password that is asked for is right; three times at most.
  func ask(_ question: Question, _ first: PermissionRequest, _ withdrawal: Withdrawal) -> Answer {
    authenticator.withTries { ask in
      var question = question
      while true {
        let answer = ask(question, withdrawal)
        guard case .approved(let password?, _) = answer else { return answer }
        do throws(StoreError) {
          try first.check(password)
          return answer
        } catch {
          guard error == .rejected else { return .impossible(error.message) }
          question.failures += 1
          // The person was there, and has done what else was demanded.
          question.demand = nil
          if question.failures == 3 { return .rejected }
        }
      }
    }
  }

  func question(_ requests: [PermissionRequest]) -> Question {
    let (first, options) = (requests[0].subject, options)
    var (paths, ids): ([String], [ItemID]) = ([], [])
    var secrets: [ItemID: ItemSecrets] = [:]
    for subject in requests.map(\.subject) {
      paths += subject.paths.filter { !paths.contains($0) }
      if !ids.contains(subject.item) { ids.append(subject.item) }
      secrets[subject.item, default: []].formUnion(subject.secrets)
    }
    var question = Question(
      items: paths, ids: ids, caller: first.caller, operation: first.operation, change: first.change,
      demand: first.demand, password: first.password, timeout: options.timeout,
      reuse: first.operation == .change ? 0 : max(0, min(options.reuse, Self.longestReuse)),
      offersProcess: first.password == .none && state.withLock { $0.grants.hasOther(for: first) })
    question.secrets = secrets
    // An answer that holds longer covers no more than what the dialog names.
    guard ids.count <= Self.mostNamed else { return question }
    question.offersSession = options.keepsSessions && requests.allSatisfy(\.subject.offersSession)
    question.offeredRule = requests.allSatisfy { $0.writeRule != nil } ? first.offeredRule : nil
    return question
  }

  /// Keeps an answer, writes the rule that it names, and ends the requests that wait for it.
  func settle(_ answer: Answer, asked: [PermissionRequest], waiting: [PermissionRequest]) {
    var answer = answer
    if let action = answer.rule, !writeRule(action, asked) {
      // The answer itself counts.
      answer = action == .allow ? .approved(nil) : .refused
    }
    keep(answer, asked)
    for request in waiting where !request.isWithdrawn {
      if options.recordsAnswers { note(request, AccessEvent.Decision(answer)) }
      request.finish(answer.outcome(for: request.subject))
    }
  }
}

extension AccessController {
  /// Whether the rule was written for every item.
  private func writeRule(_ action: ProgramRules.Action, _ requests: [PermissionRequest]) -> Bool {
    var (isWritten, items) = (true, Set<ItemID>())
    for request in requests where items.insert(request.subject.item).inserted {
      do throws(StoreError) { try request.writeRule?(action) } catch { isWritten = false }
    }
    return isWritten
  }
}

extension AccessController.State {
  /// A listed question without a request is dropped.
  fileprivate mutating func unlist(_ request: PermissionRequest) {
    for index in listed.indices { listed[index].requests.removeAll { $0 === request } }
    listed.removeAll(where: \.requests.isEmpty)
  }
}

extension Answer {
  /// The action of the rule that the person chose to have written; nil: none.
  fileprivate var rule: ProgramRules.Action? {
    switch self {
    case .approved(_, .always): .allow
    case .never: .deny
    default: nil
    }
  }

  fileprivate func outcome(for subject: PermissionRequest.Subject) -> PermissionRequest.Outcome {
    switch self {
    case .approved(let password, _): .success(subject.permit(password: password))
    case .refused, .never: .failure(.accessDenied(reason: "a person refused"))
    case .rejected: .failure(.rejected)
    case .revoked: .failure(.revoked)
    case .timedOut: .failure(.timedOut)
    case .locked: .failure(.locked)
    case .impossible(let reason): .failure(.accessDenied(reason: reason))
    }
  }
}

extension PermissionRequest {
  /// One answer is enough for both.
  func isSame(as other: PermissionRequest) -> Bool {
    subject.item == other.subject.item && subject.secrets == other.subject.secrets && belongs(with: other)
  }

  /// They can be one question: of one process, for the same operation and with the same demand. A change is a question of
  /// its own.
  fileprivate func belongs(with other: PermissionRequest) -> Bool {
    let (one, other) = (subject, other.subject)
    guard one.operation == other.operation, one.operation != .change, let process = one.caller.process,
      process == other.caller.process, one.caller.executable == other.caller.executable,
      one.caller.script == other.caller.script
    else { return false }
    guard one.password == .none || (one.password == .present && one.item == other.item) else { return false }
    return one.demand == other.demand && one.password == other.password
  }
}
