import Model
import Platform
import Synchronization

/// Has a person asked where an item demands it, and remembers the answers for some seconds.
///
/// Questions that one process asks at the same time are one dialog. An answer holds for the process, the operation and the
/// items that the dialog named, or for more where the dialog offered that and the person chose it; an answer to a change of
/// protection holds once. An item that was refused three times in a minute is closed for the next. Dialogs on different
/// terminals, or of different programs without one, do not wait for each other.
public final class AccessController: Sendable {
  /// The times that a controller goes by.
  public struct Options: Sendable {
    /// How long a question waits for its answer, in seconds.
    public var timeout = 60
    /// How long an answer holds, in seconds.
    public var reuse = 10

    /// The defaults: 60 s for an answer, which holds for 10 s.
    public init() {}

    /// Whether answers may hold for a session: this process lives as long as a mount.
    public var keepsSessions = false
    /// Whether a question that can be asked nowhere waits for `keyhole approve`; no: it is refused at once.
    public var listsRequests = false
    /// The proofs that a person can give here to `keyhole approve`: a question that takes another one is refused at once.
    public var factors: @Sendable () -> ApprovalFactors = { .all }
    /// Whether a yes, where the program can't give it, meets `userPresence`; no: it takes the passphrase, PAM or a fingerprint.
    public var presenceByButton = false
    /// Programs that cause no question about a guarded item.
    public var browsers = BrowserList()
    /// Called for each request that is listed, on any thread.
    public var onListed: (@Sendable (ListedRequest) -> Void)?

    /// Whether answers are written to the record; no: another process writes them.
    var recordsAnswers = true

    /// For a process that has another one decide, whose limits, memory and record count.
    public static var relaying: Options {
      var options = Options()
      (options.timeout, options.reuse, options.recordsAnswers) = (3600, 0, false)
      return options
    }
  }

  /// The longest that an answer may hold, in seconds.
  public static let longestReuse = 300
  /// How long an approval holds for the next process, where the one that asked has ended, in seconds.
  public static let nextSeconds = 60
  static let mostWaiting = 1024
  static let refusalsUntilClosed = 3
  static let closedFor: UInt64 = 60

  let authenticator: any Authenticator
  private let present: @Sendable () -> Options
  let now: @Sendable () -> UInt64
  let record: (any AccessRecord)?
  let numbers: RequestNumbers
  /// Each dialog waits for a person.
  let dialogs = WaitingThreads()
  /// Timers that fire in time, also while all of Dispatch's threads wait.
  let deadlines = Deadlines()
  let state = Mutex(State())

  struct State {
    /// Requests that no dialog is open for yet.
    var waiting: [DialogQueue: [PermissionRequest]] = [:]
    var open: [DialogQueue: Dialog] = [:]
    /// Questions that could be asked nowhere, the oldest first.
    var listed: [ListedDialog] = []
    var grants = AccessGrants()
    var refusedProcesses: [Caller.Identity.Process: UInt64] = [:]
    var refusals: [ItemID: [UInt64]] = [:]
    var lockCount = 0
  }

  /// Dialogs of one queue are shown one after the other.
  enum DialogQueue: Hashable {
    case terminal(String)
    case program(FileID)
    case unidentified

    init(_ caller: Caller.Identity) {
      self =
        caller.terminal.map(DialogQueue.terminal) ?? caller.executable.map { .program($0.file) }
        ?? .unidentified
    }
  }

  struct Dialog {
    var requests: [PermissionRequest]
    let withdrawal: Withdrawal
  }

  /// The number of items that a dialog names; an answer that holds longer is not offered for more.
  static let mostNamed = 10

  /// `now` counts seconds on a clock that a person can't set and that counts suspend.
  public convenience init(
    _ authenticator: any Authenticator, _ options: Options = Options(),
    record: (any AccessRecord)? = nil,
    now: @escaping @Sendable () -> UInt64 = AccessController.bootTime
  ) {
    self.init(authenticator, { options }, record: record, now: now)
  }

  /// `options` gives those that hold at the moment. It is called outside of all locks, and may ask the stores.
  public init(
    _ authenticator: any Authenticator, _ options: @escaping @Sendable () -> Options,
    record: (any AccessRecord)? = nil, numbers: RequestNumbers = RequestNumbers(),
    now: @escaping @Sendable () -> UInt64 = AccessController.bootTime
  ) {
    self.authenticator = authenticator
    present = options
    (self.record, self.numbers) = (record, numbers)
    self.now = now
  }

  /// The options that hold now.
  var options: Options { present() }

  /// CLOCK_BOOTTIME in seconds.
  public static let bootTime: @Sendable () -> UInt64 = { UInt64(clamping: SystemTime.sinceBoot.seconds) }

  /// The keychain was locked: every answer is forgotten, and open questions about items that a lock closes end with
  /// `locked`.
  public func lock() {
    let ended = state.withLock { state in
      state.lockCount &+= 1
      state.grants.removeAll()
      return
        (state.waiting.values.flatMap { $0 } + state.open.values.flatMap(\.requests)
        + state.listed.flatMap(\.requests))
        .filter { !$0.subject.outlastsLock }
    }
    for request in ended { end(request, with: .failure(.locked), .locked) }
  }

  var lockCount: Int { state.withLock { $0.lockCount } }
}

// MARK: - Deciding

extension AccessController {
  /// Whether a person has to be asked, after what was answered lately.
  ///
  /// - Throws: `accessDenied`.
  func permission(_ request: PermissionRequest) throws(StoreError) -> Permission {
    if let permit = reusedPermit(for: request) {
      note(request, .reused)
      return .given(permit)
    }
    guard !isClosed(request.subject) else {
      note(request, .closed)
      throw .accessDenied(reason: "it was refused lately; wait a minute")
    }
    return .asked(request)
  }

  func note(_ request: PermissionRequest, _ decision: AccessEvent.Decision) {
    let subject = request.subject
    note(
      subject.operation, subject.item, subject.secrets, subject.caller, decision, view: subject.view)
  }

  func note(
    _ operation: AccessOperation, _ item: ItemID, _ secrets: ItemSecrets = .value,
    _ caller: @autoclosure () -> Caller.Identity?,
    _ decision: AccessEvent.Decision, guarded: Bool = true, view: ItemID? = nil
  ) {
    guard let record, record.takes(guarded: guarded) else { return }
    let now = Timestamp(seconds: Timestamp.now.seconds)
    var event = AccessEvent(operation, item, secrets, by: caller(), decision, at: now)
    event.view = view
    record.note(event)
  }

  /// The permit that an earlier answer gives.
  func reusedPermit(for request: PermissionRequest) -> Permit? {
    let time = now()
    let grant = state.withLock { state in
      state.grants.removeAll(endingBy: time)
      return state.grants.grant(for: request.subject)
    }
    guard let grant else { return nil }
    let caller = request.subject.caller
    guard grant.digest == nil || grant.digest == caller.digestOfExecutable(),
      grant.servedDigest == nil || grant.servedDigest == caller.digestOfServed()
    else { return nil }
    guard state.withLock({ $0.grants.use(grant) }) else { return nil }
    guard let password = grant.password else { return request.subject.permit() }
    do throws(StoreError) {
      if request.subject.password == .present { try request.check(password) }
    } catch {
      // It was changed since, perhaps by another process.
      guard error != .rejected else {
        state.withLock { $0.grants.removeAll(with: password) }
        return nil
      }
    }
    return request.subject.permit(password: password)
  }

  func isClosed(_ subject: PermissionRequest.Subject) -> Bool {
    let time = now()
    return state.withLock { state in
      let refusals = (state.refusals[subject.item] ?? []).filter { $0 + Self.closedFor > time }
      state.refusals[subject.item] = refusals.isEmpty ? nil : refusals
      if refusals.count >= Self.refusalsUntilClosed { return true }
      state.refusedProcesses = state.refusedProcesses.filter { $0.value > time }
      guard let process = subject.caller.process else { return false }
      // The same item may be asked for again; another one of the same walk through a folder is not.
      return refusals.isEmpty && state.refusedProcesses[process] != nil
    }
  }

  /// Keeps an answer for later requests.
  func keep(_ answer: Answer, _ requests: [PermissionRequest]) {
    let (time, options) = (now(), options)
    let end = time + UInt64(clamping: min(options.reuse, Self.longestReuse))
    state.withLock { state in
      switch answer {
      case .approved where options.reuse > 0:
        for request in requests { state.grants.add(request.subject, answer, until: end) }
      case .refused, .never, .rejected:
        for process in requests.compactMap(\.subject.caller.process) { state.refusedProcesses[process] = end }
        for item in Set(requests.map(\.subject.item)) { state.refusals[item, default: []].append(time) }
      default: break
      }
    }
    if case .approved(_, .session) = answer, options.keepsSessions { keepForSession(requests) }
    guard case .approved(_?, _) = answer else { return }
    // A password is not kept longer than it may be used.
    deadlines.run(after: .seconds(max(0, options.reuse) + 1)) { [weak self] in
      guard let self else { return }
      let time = now()
      state.withLock { $0.grants.removeAll(endingBy: time) }
    }
  }

  private func keepForSession(_ requests: [PermissionRequest]) {
    for request in requests {
      let caller = request.subject.caller
      // The owner of the file can write another program into it.
      let digest = caller.executable?.isFixed == true ? nil : caller.digestOfExecutable() ?? ""
      state.withLock { $0.grants.addForSession(request.subject, digest: digest) }
    }
  }
}
