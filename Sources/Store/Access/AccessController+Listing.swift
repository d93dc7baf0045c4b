public import Model
import Synchronization

/// A question of which a person is not asked until `keyhole approve` names it.
struct ListedDialog {
  let number: UInt32
  var requests: [PermissionRequest]
  let reason: String
  /// When it ends, by the controller's clock.
  var end: UInt64
  /// `keyhole approve` is asking.
  var isBeingAsked = false
}

extension AccessController {
  /// So many questions may be listed.
  static let mostListed = 64

  /// The requests that wait for an approval, the oldest first.
  public func listedRequests() -> [ListedRequest] {
    let time = now()
    return state.withLock { $0.listed }.compactMap { describe($0, at: time) }
  }

  /// nil: no request waits any more.
  private func describe(_ dialog: ListedDialog, at time: UInt64) -> ListedRequest? {
    guard let first = dialog.requests.first?.subject else { return nil }
    var paths: [String] = []
    for path in dialog.requests.flatMap(\.subject.paths) where !paths.contains(path) { paths.append(path) }
    return ListedRequest(
      number: dialog.number, paths: paths, purpose: .access(first.operation), caller: first.caller,
      reason: dialog.reason, secondsLeft: Int(clamping: dialog.end > time ? dialog.end - time : 0))
  }

  /// Keeps a question that could be asked nowhere until it is approved, denied or over. False: it is not to be listed.
  func list(_ dialog: Dialog, _ requests: [PermissionRequest], because reason: String) -> Bool {
    let waiting = requests.filter { !$0.isWithdrawn }
    let (time, options) = (now(), options)
    guard options.listsRequests, let first = waiting.first,
      first.subject.provableDemand.isSatisfiable(with: options.factors())
    else { return false }
    let (isListed, new) = state.withLock { state -> (Bool, ListedDialog?) in
      let end = time + UInt64(clamping: options.timeout)
      if let same = state.listed.firstIndex(where: { $0.takes(waiting[0]) }) {
        state.listed[same].requests += waiting
        state.listed[same].end = max(end, state.listed[same].end)
        return (true, nil)
      }
      guard state.listed.count < Self.mostListed else { return (false, nil) }
      let new = ListedDialog(
        number: numbers.next(), requests: waiting, reason: reason, end: end)
      state.listed.append(new)
      return (true, new)
    }
    // One that was withdrawn meanwhile was not found in the list.
    for request in waiting where request.isWithdrawn { withdraw(request) }
    if let new {
      note(new.requests[0], .listed)
      if let description = describe(new, at: time) { options.onListed?(description) }
    }
    if isListed { for request in waiting { request.noteListing() } }
    return isListed
  }

  /// Refuses a listed request. - Throws: `notFound` where none has this number.
  public func deny(_ number: UInt32) throws(StoreError) {
    let dialog = state.withLock { state -> ListedDialog? in
      guard let index = state.listed.firstIndex(where: { $0.number == number }) else { return nil }
      return state.listed.remove(at: index)
    }
    guard let dialog else { throw .notFound }
    settle(.refused, dialog.requests)
  }

  /// Asks the person for the proof that approves a listed request: what the request demands, and a passphrase or a
  /// fingerprint where that is a plain yes, since a program could type a yes.
  ///
  /// It waits for the person, and returns when the request is approved.
  /// - Parameters:
  ///   - number: the number of the request.
  ///   - scope: how long the approval holds: `items`, `session` or `always`.
  ///   - approver: the process at whose terminal the person is asked.
  ///   - withdrawal: ends the question when the approver has gone.
  /// - Throws: `notFound` where no request has this number, or it ended meanwhile; `accessDenied`, `rejected`, `timedOut`
  ///   for an answer that approves nothing: the request waits on; `invalidValue` for a scope that it can't have.
  public func approve(
    _ number: UInt32, _ scope: Answer.Scope, by approver: Caller.Identity, _ withdrawal: Withdrawal
  ) throws(StoreError) {
    let requests = try begin(number)
    defer { endAsking(number) }
    guard let first = requests.first else { throw .notFound }
    var question = question(requests)
    try question.require(scope)
    question.demand = first.subject.provableDemand
    // A change of rules demands more than a yes; where flags demand more, it demands the same.
    if scope == .always, let rule = question.offeredRule?.demand { question.demand = rule.provable }
    (question.approver, question.approvedScope) = (approver, scope)
    // Only what is shown now may hold for the next process.
    let forNext = scope == .items ? requests.filter(\.isForNext) : []
    question.approvesNext = !forNext.isEmpty
    let program = question.offeredRule?.program
    (question.offersProcess, question.offersSession, question.offeredRule) = (
      false, false, program.map { OfferedRule(program: $0, demand: nil) }
    )
    let answer = ask(question, first, withdrawal)
    guard case .approved(let password, _) = answer else { throw answer.failure }
    let approved = state.withLock { state -> [PermissionRequest] in
      guard let index = state.listed.firstIndex(where: { $0.number == number }) else { return [] }
      // Others may have joined since the person was asked: they wait on.
      let shown = state.listed[index].requests.filter { request in
        requests.contains { $0.isSame(as: request) }
      }
      state.listed[index].requests.removeAll { request in shown.contains { $0 === request } }
      if state.listed[index].requests.isEmpty { state.listed.remove(at: index) }
      return shown
    }
    guard !approved.isEmpty else { throw .notFound }
    settle(.approved(password, scope: scope), approved)
    keepForNext(approved.filter { request in forNext.contains { $0 === request } })
  }

  /// Where no process of them runs any more, the next one that does the same has the answer, once.
  private func keepForNext(_ requests: [PermissionRequest]) {
    guard !requests.contains(where: { $0.subject.caller.process?.isRunning != false }) else { return }
    let end = now() + UInt64(Self.nextSeconds)
    var kept: [PermissionRequest.Subject] = []
    for request in requests {
      let subject = request.subject
      guard !kept.contains(where: { $0.item == subject.item && $0.secrets == subject.secrets }) else {
        continue
      }
      kept.append(subject)
      state.withLock { $0.grants.addForNext(subject, digest: request.digestForNext, until: end) }
    }
  }

  private func begin(_ number: UInt32) throws(StoreError) -> [PermissionRequest] {
    let outcome = state.withLock { state -> Result<[PermissionRequest], StoreError> in
      guard let index = state.listed.firstIndex(where: { $0.number == number }) else {
        return .failure(.notFound)
      }
      guard !state.listed[index].isBeingAsked else {
        return .failure(.notPermitted(reason: "another `keyhole approve` asks about it"))
      }
      state.listed[index].isBeingAsked = true
      return .success(state.listed[index].requests)
    }
    return try outcome.get()
  }

  private func endAsking(_ number: UInt32) {
    state.withLock { state in
      guard let index = state.listed.firstIndex(where: { $0.number == number }) else { return }
      state.listed[index].isBeingAsked = false
    }
  }

  private func settle(_ answer: Answer, _ requests: [PermissionRequest]) {
    settle(answer, asked: requests, waiting: requests)
  }
}

extension ListedDialog {
  /// Whether a request belongs to it: one answer is enough, or a further process does what others did, which were answered.
  fileprivate func takes(_ request: PermissionRequest) -> Bool {
    requests.contains { $0.isSame(as: request) }
      || !isBeingAsked && requests.allSatisfy { $0.isForNext && $0.isRepeated(by: request) }
  }
}

extension PermissionRequest {
  /// Whether a process wants the same again, and is shown to a person in the same way.
  fileprivate func isRepeated(by other: PermissionRequest) -> Bool {
    let (one, other) = (subject, other.subject)
    return one.item == other.item && one.secrets == other.secrets && one.operation == other.operation
      && one.view == other.view && one.demand == other.demand && one.password == other.password
      && one.caller.executable?.file == other.caller.executable?.file
      && one.caller.script == other.caller.script
      && other.caller.serves(one.caller.startedCommand, one.caller.helped)
      && one.caller.shown.isShown(by: other.caller)
  }
}

extension Question {
  /// - Throws: `invalidValue` where an answer of this scope is not offered.
  fileprivate func require(_ scope: Answer.Scope) throws(StoreError) {
    switch scope {
    case .items: return
    case .session where offersSession: return
    case .always where offeredRule != nil: return
    case .session, .process:
      throw .invalidValue(reason: "an answer for the session is not possible here; approve it once")
    case .always: throw .invalidValue(reason: "no rule can be written for this program; approve it once")
    }
  }
}

extension PermissionRequest.Subject {
  /// The demand with which `keyhole approve` gives it.
  fileprivate var provableDemand: Demand { (demand ?? .consent).provable }
}

extension Demand {
  /// The same, with a proof in the place of each plain yes.
  fileprivate var provable: Demand {
    switch self {
    case .consent: .any([.passcode, .biometry])
    case .any(let demands): .any(demands.map(\.provable))
    case .all(let demands): .all(demands.map(\.provable))
    case .passcode, .biometry, .biometryOfSet: self
    }
  }
}

extension Answer {
  /// The error for an answer that approves nothing.
  fileprivate var failure: StoreError {
    switch self {
    case .approved, .refused, .never: .accessDenied(reason: "you refused; the request still waits")
    case .rejected: .rejected
    case .revoked: .revoked
    case .timedOut: .timedOut
    case .locked: .locked
    case .impossible(let reason): .accessDenied(reason: reason)
    }
  }
}
