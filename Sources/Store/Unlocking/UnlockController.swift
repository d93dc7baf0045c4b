import Model
import Platform
import SecretMemory
import Synchronization

/// Has a person asked for the passphrase of a keychain when a secret of it is wanted while it is locked.
///
/// There is one question at a time, and every request that comes while it is open waits for its answer. A request that is
/// withdrawn leaves the question to the others; the question ends with the last one. After a refusal, a time-out or three
/// wrong passphrases the tree of the process (`ProcessTree`) is not asked for a minute. A process may leave its tree, so after
/// the third refusal in a row no process is asked for a minute, after each further one for twice as long, up to an hour;
/// `didUnlock()` ends that.
///
/// A request for which no dialog could be shown is listed, where the options say so: `keyhole approve` takes the passphrase
/// for it. Where that does not come in time, its tree is not asked for a minute, as after a refusal, and the request stays in
/// the list as long; such a time-out is none of the refusals in a row.
public final class UnlockController: Sendable {
  /// For how long a tree of processes is not asked after a refusal, in seconds.
  static let quietSeconds: UInt64 = 60
  /// For how long a tree of processes is not asked where no dialog could be shown, in seconds.
  static let quietSecondsWithoutDialog: UInt64 = 5
  static let refusalsUntilQuiet = 3
  static let longestQuietSeconds: UInt64 = 3600
  static let mostWaiting = 1024
  static let mostQuietTrees = 1024
  /// How often a person may type the passphrase for one question.
  public static let attempts = 3

  private let authenticator: any Authenticator
  private let present: @Sendable () -> Options
  let now: @Sendable () -> UInt64
  let numbers: RequestNumbers
  /// The dialog waits for a person.
  private let threads = WaitingThreads()
  /// Timers that fire in time, also while all of Dispatch's threads wait.
  let deadlines = Deadlines()
  let state = Mutex(State())

  struct State {
    /// nil: no question is open.
    var question: OpenQuestion?
    /// Requests for which no dialog could be shown, the oldest first.
    var listed: [ListedUnlock] = []
    /// A thread shows dialogs. It takes the next question when the dialog of an ended one has left its terminal.
    var isServing = false
    /// Until when trees of processes are not asked, and why, by their topmost processes.
    var quiet: [Caller.Identity.Process: Quiet] = [:]
    var refusalsInARow = 0
    /// Until when no process is asked.
    var quietForAll: UInt64 = 0
    var isPaused = false
  }

  struct Quiet {
    var tree: ProcessTree
    var end: UInt64
    var reason: String
    /// False: no person was asked, as no dialog could be shown, and a further request is listed.
    var isRefusal: Bool
  }

  struct OpenQuestion {
    var requests: [UnlockRequest]
    /// The request whose process the dialog names.
    var shown: UnlockRequest
    var withdrawal = Withdrawal()

    init(_ request: UnlockRequest) {
      (requests, shown) = ([request], request)
    }
  }

  /// The settings that a controller goes by.
  public struct Options: Sendable {
    /// How long a dialog waits for an answer, in seconds.
    public var timeout = 60
    /// Whether a person is asked at all.
    public var asks = true
    /// Programs that open files by themselves, for which no person is asked.
    public var browsers = BrowserList()
    /// Whether a request for which no dialog can be shown waits for `keyhole approve`; no: it ends at once.
    public var listsRequests = false
    /// Called for each request that is listed, on any thread.
    public var onListed: (@Sendable (ListedRequest) -> Void)?

    /// 60 s, and a person is asked.
    public init() {}
  }

  /// `options` gives those that hold at the moment; it is called outside of all locks, and may ask the stores. `numbers` are
  /// those of the keychain's other controller, where it has one. `now` counts seconds on a clock that a person can't set and that
  /// counts suspend.
  public init(
    _ authenticator: any Authenticator, _ options: @escaping @Sendable () -> Options = { Options() },
    numbers: RequestNumbers = RequestNumbers(),
    now: @escaping @Sendable () -> UInt64 = AccessController.bootTime
  ) {
    (self.authenticator, present, self.numbers, self.now) = (authenticator, options, numbers, now)
  }

  /// The options that hold now.
  public var options: Options { present() }

  /// The session is locked, or the machine goes to sleep: ends the question that is open, and asks nothing until `resume()`.
  public func pause() {
    state.withLock { $0.isPaused = true }
    endAll(.stillLocked(reason: Self.paused))
  }

  /// Questions may be asked again.
  public func resume() {
    state.withLock { $0.isPaused = false }
  }

  /// The keychain was unlocked, on any interface: the question that is open ends, and earlier refusals are forgotten.
  public func didUnlock() {
    state.withLock { state in
      state.quiet = [:]
      (state.refusalsInARow, state.quietForAll) = (0, 0)
    }
    endAll(.unlocked)
  }

  /// The keychain was locked by its user: the question that is open ends.
  public func didLock() {
    endAll(.stillLocked(reason: "it was locked while the question was open"))
  }

  static let paused = "the session is locked, or the machine goes to sleep"

  /// Settles every request, also those that are listed.
  private func endAll(_ outcome: UnlockRequest.Outcome) {
    end(outcome)
    let listed = state.withLock { state in
      defer { state.listed = [] }
      return state.listed
    }
    for request in listed.flatMap(\.requests) { request.finish(outcome) }
  }

  /// Ends the dialog and settles every request that waits for it.
  private func end(_ outcome: UnlockRequest.Outcome) {
    let question = state.withLock { $0.question.take() }
    question?.withdrawal.withdraw()
    for request in question?.requests ?? [] { request.finish(outcome) }
  }
}

// MARK: - Requests

extension UnlockController {
  fileprivate enum Place {
    case begins
    case isTaken
    case listed(Listing)
    case withdrawn
    case refused(String)
  }

  func ask(_ request: UnlockRequest) {
    let (time, options) = (now(), options)
    let place = state.withLock { state -> Place in
      // A withdrawal from now on finds the request in the question.
      if request.isWithdrawn { return .withdrawn }
      return state.place(request, at: time, options, numbers)
    }
    switch place {
    case .isTaken, .withdrawn: break
    case .listed(let listing): follow(listing, options)
    case .refused(let reason): request.finish(.stillLocked(reason: reason))
    case .begins:
      guard !threads.run({ self.serve() }) else { return }
      state.withLock { $0.isServing = false }
      end(.stillLocked(reason: "too many dialogs are open"))
    }
  }

  /// The request does not wait any more.
  func withdraw(_ request: UnlockRequest) {
    let ended = state.withLock { state -> Withdrawal? in
      state.unlist(request)
      state.question?.requests.removeAll { $0 === request }
      guard let question = state.question, question.shown === request else { return nil }
      // A dialog on the terminal of a process that has left it would stand over the shell's prompt.
      let staysThere = question.requests.contains {
        $0.subject.caller.terminal == request.subject.caller.terminal
      }
      return staysThere ? nil : question.withdrawal
    }
    ended?.withdraw()
  }
}

extension UnlockController.State {
  fileprivate mutating func place(
    _ request: UnlockRequest, at time: UInt64, _ options: UnlockController.Options, _ numbers: RequestNumbers
  ) -> UnlockController.Place {
    if isPaused { return .refused(UnlockController.paused) }
    if let question {
      guard question.requests.count < UnlockController.mostWaiting else {
        return .refused("too many programs wait for it")
      }
      self.question?.requests.append(request)
      return .isTaken
    }
    if quietForAll > time { return .refused("it was refused \(refusalsInARow) times in a row") }
    quiet = quiet.filter { $0.value.end > time }
    let entries = quiet.values.filter { request.subject.tree.isCovered(byRefusalOf: $0.tree) }
    if let entry = entries.first(where: \.isRefusal) ?? entries.first {
      guard options.listsRequests, !entry.isRefusal else { return .refused(entry.reason) }
      return .listed(list([request], because: entry.reason, at: time, options, numbers))
    }
    question = UnlockController.OpenQuestion(request)
    defer { isServing = true }
    return isServing ? .isTaken : .begins
  }
}

// MARK: - Asking

extension UnlockController {
  enum Result {
    case unlocked
    case refused(String)
    /// No person has seen it.
    case impossible(String)
    /// The passphrase is not what keeps it locked.
    case failed(String)
  }

  /// One dialog after the other: also a further one for the same question, where the process that it names has left it to
  /// others.
  private func serve() {
    while let (request, withdrawal) = next() {
      let result = ask(
        request.subject, { (passphrase) throws(StoreError) in try request.unlock(passphrase) }, withdrawal)
      if !withdrawal.isWithdrawn { settle(result, request.subject) }
    }
  }

  /// The request to be shown; nil: none waits any more, and this thread ends.
  private func next() -> (UnlockRequest, Withdrawal)? {
    state.withLock { state in
      guard var question = state.question, let first = question.requests.first else {
        (state.question, state.isServing) = (nil, false)
        return nil
      }
      if question.withdrawal.isWithdrawn { question.withdrawal = Withdrawal() }
      question.shown = first
      state.question = question
      return (first, question.withdrawal)
    }
  }

  /// `approver`: the process of `keyhole approve`, where that asks; nil: the program itself waits where it is asked.
  func ask(
    _ subject: UnlockRequest.Subject, _ unlock: UnlockRequest.Unlock, _ withdrawal: Withdrawal,
    approver: Caller.Identity? = nil
  ) -> Result {
    var question = Question(
      forPassphraseToOpen: subject.path, by: subject.caller, timeout: options.timeout)
    question.approver = approver
    return authenticator.withTries { self.ask(question, unlock, withdrawal, by: $0) }
  }

  private func ask(
    _ question: Question, _ unlock: UnlockRequest.Unlock, _ withdrawal: Withdrawal,
    by ask: (Question, Withdrawal) -> Answer
  ) -> Result {
    var question = question
    while true {
      switch ask(question, withdrawal) {
      case .approved(let passphrase?, _):
        guard !withdrawal.isWithdrawn else { return .refused("") }
        do throws(StoreError) {
          try unlock(passphrase.bytes)
          return .unlocked
        } catch {
          guard error == .rejected else { return .failed(error.message) }
        }
        question.failures += 1
        if question.failures == Self.attempts { return .refused("the passphrase was wrong three times") }
      case .approved(nil, _): return .impossible("no passphrase was given")
      case .refused, .never: return .refused("a person refused")
      case .rejected, .revoked: return .refused("the passphrase was wrong")
      case .timedOut: return .refused("the question was not answered in time")
      case .locked: return .impossible(StoreError.locked.message)
      case .impossible(let reason): return .impossible(reason)
      }
    }
  }

  private func settle(_ result: Result, _ subject: UnlockRequest.Subject) {
    switch result {
    case .unlocked: didUnlock()
    case .refused(let reason):
      keepQuiet(subject, reason)
      end(.stillLocked(reason: reason))
    case .impossible(let reason):
      keepQuiet(subject, for: Self.quietSecondsWithoutDialog, reason, isRefusal: false)
      let options = options
      if options.listsRequests {
        listQuestion(because: reason, options)
      } else {
        end(.stillLocked(reason: reason))
      }
    case .failed(let reason):
      keepQuiet(subject, for: Self.quietSecondsWithoutDialog, reason, isRefusal: false)
      end(.stillLocked(reason: reason))
    }
  }

  func keepQuiet(
    _ subject: UnlockRequest.Subject, for period: UInt64 = quietSeconds, _ reason: String,
    isRefusal: Bool = true, isCounted: Bool = true
  ) {
    let time = now()
    state.withLock { state in
      // That of all processes holds then.
      if state.quiet.count >= Self.mostQuietTrees { state.quiet = [:] }
      let tree = subject.tree
      state.quiet[tree.root] = Quiet(tree: tree, end: time + period, reason: reason, isRefusal: isRefusal)
      guard isRefusal, isCounted else { return }
      state.refusalsInARow += 1
      let further = state.refusalsInARow - Self.refusalsUntilQuiet
      guard further >= 0 else { return }
      let quiet = min(Self.longestQuietSeconds, Self.quietSeconds << UInt64(min(further, 10)))
      state.quietForAll = time + quiet
    }
  }
}
