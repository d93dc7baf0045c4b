import Dispatch
import Glibc
import Model
import Synchronization

/// Decides who gets a secret, and has a person asked where the item says so.
///
/// Questions that come together from one program are one question; an answer holds for some seconds; an item that
/// was refused three times in a minute is closed for the next. Dialogs of different terminals, or of different
/// programs where there is none, do not wait for each other.
public final class Gatekeeper: Sendable {
  public struct Options: Sendable {
    /// How long a question waits for its answer, in seconds.
    public var timeout = 60
    /// How long an answer holds, in seconds.
    public var reuse = 10

    public init() {}

    /// Whether answers are noted in the record; no: whoever gives them does.
    var notesAnswers = true

    /// For who has somebody else decide, whose limit, memory and record are what counts.
    public static var relaying: Options {
      var options = Options()
      (options.timeout, options.reuse, options.notesAnswers) = (3600, 0, false)
      return options
    }
  }

  /// The longest that an answer may hold, in seconds.
  public static let longestReuse = 300
  /// So many may wait at once.
  static let mostWaiting = 1024
  /// How long questions are gathered before they are put together.
  private static let gathering = DispatchTimeInterval.milliseconds(40)
  private static let refusalsUntilClosed = 3
  private static let closedFor: UInt64 = 60

  private let authenticator: any Authenticator
  private let options: Options
  private let now: @Sendable () -> UInt64
  private let record: (any AccessRecord)?
  /// Each dialog waits for a person.
  private let dialogs = WaitingThreads()
  private let state = Mutex(State())

  private struct State {
    var desks: [Desk: [PermissionRequest]] = [:]
    var open: [Desk: Dialog] = [:]
    var grants: [Grant] = []
    var refusedProcesses: [Asker.Process: UInt64] = [:]
    var refusals: [ItemID: [UInt64]] = [:]
  }

  /// Where dialogs take turns.
  private enum Desk: Hashable {
    case terminal(String)
    case program(Asker.File)

    init(_ asker: Asker) {
      self = asker.terminal.map(Desk.terminal) ?? .program(asker.programFile)
    }
  }

  private struct Dialog {
    var requests: [PermissionRequest]
    let withdrawal: Withdrawal
  }

  fileprivate struct Grant {
    var item: ItemID
    var program: Asker.File
    var process: Asker.Process
    var demand: Demand?
    var password: ItemPassword?
    var end: UInt64
  }

  /// `now` counts seconds on a clock that a person can't set and that counts suspend.
  public init(
    _ authenticator: any Authenticator, _ options: Options = Options(),
    record: (any AccessRecord)? = nil,
    now: @escaping @Sendable () -> UInt64 = Gatekeeper.bootTime
  ) {
    self.authenticator = authenticator
    self.options = options
    self.record = record
    self.now = now
  }

  /// CLOCK_BOOTTIME in seconds.
  public static let bootTime: @Sendable () -> UInt64 = {
    var time = timespec()
    unsafe clock_gettime(CLOCK_BOOTTIME, &time)
    return UInt64(time.tv_sec)
  }

  /// Forgets every answer: the keychain was locked.
  public func forget() {
    state.withLock { $0.grants = [] }
  }
}

// MARK: - Deciding

extension Gatekeeper {
  /// What the rules say, and what was answered lately.
  ///
  /// - Throws: `accessDenied`.
  func permission(_ request: PermissionRequest) throws(StoreError) -> Permission {
    if let permit = grant(for: request) {
      note(request, .reused)
      return .given(permit)
    }
    guard !isClosed(request) else {
      note(request, .closed)
      throw .accessDenied(reason: "it was refused lately; wait a minute")
    }
    return .asked(request)
  }

  func note(_ request: PermissionRequest, _ decision: AccessEvent.Decision) {
    note(request.operation, request.item, request.asker, decision)
  }

  func note(
    _ operation: AccessEvent.Operation, _ item: ItemID, _ asker: @autoclosure () -> Asker?,
    _ decision: AccessEvent.Decision, guarded: Bool = true
  ) {
    guard let record, record.takes(guarded: guarded) else { return }
    let now = Timestamp(seconds: Int64(time(nil)))
    record.note(AccessEvent(operation, item, by: asker(), decision, at: now))
  }

  /// The permit that an earlier answer gives.
  private func grant(for request: PermissionRequest) -> Permit? {
    guard let permit = keptGrant(for: request) else { return nil }
    guard request.password == .present, let password = permit.password else { return permit }
    do throws(StoreError) {
      try request.check(password)
    } catch {
      // It was changed since, perhaps by another process.
      guard error != .rejected else {
        state.withLock { $0.grants.removeAll { $0.password === password } }
        return nil
      }
    }
    return permit
  }

  private func keptGrant(for request: PermissionRequest) -> Permit? {
    let time = now()
    return state.withLock { state in
      state.grants.removeAll { $0.end <= time }
      guard request.password != .new, let grant = state.grants.first(where: { $0.covers(request) }) else {
        return nil
      }
      return Permit(item: request.item, password: grant.password)
    }
  }

  private func isClosed(_ request: PermissionRequest) -> Bool {
    let time = now()
    return state.withLock { state in
      let refusals = (state.refusals[request.item] ?? []).filter { $0 + Self.closedFor > time }
      state.refusals[request.item] = refusals.isEmpty ? nil : refusals
      if refusals.count >= Self.refusalsUntilClosed { return true }
      state.refusedProcesses = state.refusedProcesses.filter { $0.value > time }
      // The same item may be asked for again; another one of the same walk through a folder is not.
      return refusals.isEmpty && state.refusedProcesses[request.asker.process] != nil
    }
  }
}

extension Gatekeeper.Grant {
  /// The same program for the same item; or the same process, so that a walk through a folder is one question.
  fileprivate func covers(_ request: PermissionRequest) -> Bool {
    guard demand == request.demand else { return false }
    if item == request.item, program == request.asker.programFile { return true }
    return process == request.asker.process && request.password == .none
  }
}

// MARK: - Asking

extension Gatekeeper {
  func put(_ request: PermissionRequest) {
    if let permit = grant(for: request) { return end(request, with: .success(permit), .reused) }
    let desk = Desk(request.asker)
    let (isFirst, isTooMany): (Bool, Bool) = state.withLock { state in
      // Since it was started; whoever withdraws it from now on finds it here.
      guard !request.isWithdrawn else { return (false, false) }
      let count =
        state.desks.values.reduce(0) { $0 + $1.count }
        + state.open.values.reduce(0) { $0 + $1.requests.count }
      guard count < Self.mostWaiting else { return (false, true) }
      if let dialog = state.open[desk], dialog.requests.contains(where: { $0.isSame(as: request) }) {
        state.open[desk]?.requests.append(request)
        return (false, false)
      }
      let isFirst = state.desks[desk] == nil
      state.desks[desk, default: []].append(request)
      return (isFirst, false)
    }
    if isTooMany { return end(request, with: .failure(.tooManyOpen), .impossible) }
    Background.run(after: .seconds(options.timeout)) {
      [weak self, weak request] in
      if let request { self?.end(request, with: .failure(.timedOut), .timedOut) }
    }
    guard isFirst else { return }
    Background.run(after: Self.gathering) { [self] in
      if !dialogs.run({ self.serve(desk) }) { turnAway(desk) }
    }
  }

  /// There are too many dialogs already.
  private func turnAway(_ desk: Desk) {
    let waiting = state.withLock { $0.desks.removeValue(forKey: desk) ?? [] }
    for request in waiting { end(request, with: .failure(.tooManyOpen), .impossible) }
  }

  func withdraw(_ request: PermissionRequest) {
    remove(request)
    note(request, .withdrawn)
  }

  private func end(
    _ request: PermissionRequest, with outcome: PermissionRequest.Outcome, _ decision: AccessEvent.Decision
  ) {
    if request.finish(outcome) { note(request, decision) }
    remove(request)
  }

  /// Nobody waits for this one any more; a dialog that nobody waits for is closed.
  private func remove(_ request: PermissionRequest) {
    let desk = Desk(request.asker)
    let withdrawal = state.withLock { state -> Withdrawal? in
      state.desks[desk]?.removeAll { $0 === request }
      guard state.open[desk]?.requests.contains(where: { $0 === request }) == true else { return nil }
      state.open[desk]?.requests.removeAll { $0 === request }
      return state.open[desk]?.requests.isEmpty == true ? state.open[desk]?.withdrawal : nil
    }
    withdrawal?.withdraw()
  }

  /// One dialog after the other, until nobody waits here.
  private func serve(_ desk: Desk) {
    while let dialog = openDialog(desk) {
      let answer = ask(dialog)
      let waiting = state.withLock { state in
        defer { state.open[desk] = nil }
        return state.open[desk]?.requests ?? []
      }
      settle(answer, dialog, waiting)
    }
  }

  /// nil: nobody waits any more.
  private func openDialog(_ desk: Desk) -> Dialog? {
    settleAnswered(desk)
    return state.withLock { state in
      guard let first = state.desks[desk]?.first else {
        state.desks[desk] = nil
        return nil
      }
      let group = state.desks[desk]?.filter { $0 === first || $0.belongs(with: first) } ?? []
      state.desks[desk]?.removeAll { request in group.contains { $0 === request } }
      let dialog = Dialog(requests: group, withdrawal: Withdrawal())
      state.open[desk] = dialog
      return dialog
    }
  }

  /// What the last answer has decided for those who waited behind it.
  private func settleAnswered(_ desk: Desk) {
    for request in state.withLock({ $0.desks[desk] ?? [] }) {
      if let permit = grant(for: request) {
        end(request, with: .success(permit), .reused)
      } else if isClosed(request) {
        end(request, with: .failure(.accessDenied(reason: "it was refused lately")), .closed)
      }
    }
  }

  private func ask(_ dialog: Dialog) -> Answer {
    let first = dialog.requests[0]
    var (paths, ids): ([String], [ItemID]) = ([], [])
    for request in dialog.requests where !ids.contains(request.item) {
      paths.append(request.path)
      ids.append(request.item)
    }
    var question = Question(
      items: paths, ids: ids, asker: first.asker, demand: first.demand, password: first.password,
      timeout: options.timeout, reuse: min(options.reuse, Self.longestReuse))
    while true {
      let answer = authenticator.ask(question, dialog.withdrawal)
      guard case .approved(let password?) = answer else { return answer }
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

  private func settle(_ answer: Answer, _ dialog: Dialog, _ waiting: [PermissionRequest]) {
    guard !dialog.withdrawal.isWithdrawn else { return }
    keep(answer, dialog.requests)
    for request in waiting where !request.isWithdrawn {
      if options.notesAnswers { note(request, AccessEvent.Decision(answer)) }
      switch answer {
      case .approved(let password): request.finish(.success(Permit(item: request.item, password: password)))
      case .refused: request.finish(.failure(.accessDenied(reason: "a person refused")))
      case .rejected: request.finish(.failure(.rejected))
      case .revoked: request.finish(.failure(.revoked))
      case .timedOut: request.finish(.failure(.timedOut))
      case .impossible(let reason): request.finish(.failure(.accessDenied(reason: reason)))
      }
    }
  }

  /// Keeps an answer for those who come later.
  private func keep(_ answer: Answer, _ requests: [PermissionRequest]) {
    let time = now()
    let end = time + UInt64(min(options.reuse, Self.longestReuse))
    state.withLock { state in
      switch answer {
      case .approved(let password) where options.reuse > 0:
        state.grants += requests.map { request in
          Grant(
            item: request.item, program: request.asker.programFile, process: request.asker.process,
            demand: request.demand, password: password, end: end)
        }
      case .refused, .rejected:
        for request in requests { state.refusedProcesses[request.asker.process] = end }
        for item in Set(requests.map(\.item)) { state.refusals[item, default: []].append(time) }
      default: break
      }
    }
    guard case .approved(_?) = answer else { return }
    // A password is not kept longer than it may be used.
    Background.run(after: .seconds(options.reuse + 1)) { [weak self] in
      guard let self else { return }
      let time = now()
      state.withLock { $0.grants.removeAll { $0.end <= time } }
    }
  }
}

extension PermissionRequest {
  /// One answer is enough for both.
  fileprivate func isSame(as other: PermissionRequest) -> Bool {
    item == other.item && belongs(with: other)
  }

  /// They can be one question.
  fileprivate func belongs(with other: PermissionRequest) -> Bool {
    guard password == .none || (password == .present && item == other.item) else { return false }
    return demand == other.demand && password == other.password
      && asker.programFile == other.asker.programFile
  }
}
