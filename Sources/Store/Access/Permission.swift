public import Model
import Synchronization

/// The right to one operation on one item: from rules that let the caller in, or from a person's answer.
public struct Permit: Sendable {
  let item: ItemID
  let operation: AccessOperation
  /// The secrets of the item that it is for.
  let secrets: ItemSecrets
  /// The item's own password; nil: it has none.
  public let password: ItemPassword?
  /// The process that it was given to, until a file handle has it; nil: the item is not guarded.
  private var caller: Caller.Identity?
  /// When `caller` was read, if it waits in a call since; nil: it may do something else meanwhile.
  private var seen: ContinuousClock.Instant?
  /// Of a view: the permits for its items.
  private var parts: [ItemID: Permit] = [:]

  /// So long a process that waits in its call is not read again: it can't execute another program itself, and another of its
  /// threads that does so ends the one that waits.
  private static let readAgainAfter = Duration.milliseconds(1)

  package init(
    item: ItemID, for operation: AccessOperation, _ secrets: ItemSecrets = .value,
    to caller: Caller.Identity? = nil, password: ItemPassword? = nil
  ) {
    (self.item, self.operation, self.secrets) = (item, operation, secrets)
    (self.caller, self.password) = (caller, password)
  }

  /// To a process that was read just now, and waits in the call that the permit is for.
  init(
    item: ItemID, for operation: AccessOperation, _ secrets: ItemSecrets, toWaiting caller: Caller.Identity
  ) {
    self.init(item: item, for: operation, secrets, to: caller)
    seen = .now
  }

  /// The permit for an item that was new when this one was given, and is stored now; else this one.
  public func stored(as item: Item) -> Permit {
    guard self.item.rawValue.isEmpty else { return self }
    return Permit(item: item.id, for: operation, secrets, to: caller, password: password)
  }

  /// The right to operations on several items at once, as the file of a view takes it.
  public init(joining permits: [Permit]) {
    self.init(item: ItemID(rawValue: ""), for: .read)
    parts = Dictionary(permits.map { ($0.item, $0) }) { first, _ in first }
  }

  /// The permit for one item of several; nil: there is none.
  public subscript(item: ItemID) -> Permit? { parts[item] }

  /// The permit as an open file keeps it: the right belongs to the handle from then on, and passes with its descriptors.
  public var ofHandle: Permit {
    var permit = self
    permit.caller = nil
    permit.parts = parts.mapValues(\.ofHandle)
    return permit
  }

  /// To be called immediately before what the permit is for is answered.
  ///
  /// - Throws: `accessDenied` where the process has ended or executes another program than when it was permitted.
  public func requireUnchangedCaller() throws(StoreError) {
    for part in parts.values { try part.requireUnchangedCaller() }
    if let seen, ContinuousClock.now - seen < Self.readAgainAfter { return }
    guard let caller, !caller.isUnchanged else { return }
    throw .accessDenied(reason: "the program has changed since it asked")
  }
}

/// Whether an operation on an item is permitted.
public enum Permission: Sendable {
  case given(Permit)
  /// A person has to agree first.
  case asked(PermissionRequest)
  /// A person has to agree to several operations, which one permit covers.
  case askedTogether(PermissionGroup)

  /// The permission for all of several operations.
  public init(joining permissions: [Permission]) {
    let given = permissions.compactMap { if case .given(let permit) = $0 { permit } else { nil } }
    self =
      given.count == permissions.count
      ? .given(Permit(joining: given)) : .askedTogether(PermissionGroup(permissions))
  }
}

extension Permission {
  /// Waits for the answer where a person has to be asked; not for threads that others wait for.
  public func fetch() throws(StoreError) -> Permit {
    switch self {
    case .given(let permit): return permit
    case .askedTogether(let group): return Permit(joining: try group.fetch())
    case .asked: break
    }
    guard let permit = try PermissionGroup([self]).fetch().first else { throw .interrupted }
    return permit
  }
}

/// A question that has to be answered before an operation. Nothing happens until `start`.
public final class PermissionRequest: Sendable {
  /// The permit, or why it was refused.
  public typealias Outcome = Result<Permit, StoreError>

  /// The subject of the question.
  struct Subject: Sendable {
    var item: ItemID
    /// Of the item.
    var path: String
    /// The view that is opened; nil: the item's own file.
    var view: ItemID?
    var secrets = ItemSecrets.value
    var operation: AccessOperation
    var caller: Caller.Identity
    var demand: Demand?
    var password = Question.Password.none
    var change: ProtectionChange?
    /// The rule that the person may choose to have written; nil: none.
    var offeredRule: OfferedRule?
    /// The item can be opened while the keychain is locked.
    var outlastsLock = false
  }

  let subject: Subject
  /// Throws `rejected` where a password is not the item's, and makes a new one ready.
  let check: @Sendable (ItemPassword) throws(StoreError) -> Void
  /// Writes a rule for the caller's program; nil: none can be written.
  let writeRule: (@Sendable (ProgramRules.Action) throws(StoreError) -> Void)?
  /// How often the keychain was locked before.
  let lockCount: Int
  private let controller: AccessController
  private let state = Mutex(State())

  private struct State {
    var done: (@Sendable (Outcome) -> Void)?
    var onListed: (@Sendable () -> Void)?
    var isWithdrawn = false
    /// nil: the caller waits.
    var left: Left?
  }

  /// The caller was answered before the person had agreed.
  private struct Left {
    /// SHA-256 of its executable at that time; nil: its user can't change the file, or it is not known.
    var digest: String?
  }

  init(
    _ subject: Subject, _ controller: AccessController,
    check: @escaping @Sendable (ItemPassword) throws(StoreError) -> Void = { _ in },
    writeRule: (@Sendable (ProgramRules.Action) throws(StoreError) -> Void)? = nil
  ) {
    (self.subject, self.controller, self.check) = (subject, controller, check)
    self.writeRule = writeRule
    lockCount = controller.lockCount
  }

  /// Asks. `done` is called once, on any thread, unless the request is withdrawn before; `onListed` when the person could not be
  /// asked, so that the request waits for `keyhole approve`.
  public func start(
    onListed: (@Sendable () -> Void)? = nil, _ done: @escaping @Sendable (Outcome) -> Void
  ) {
    let isWanted = state.withLock { state in
      (state.done, state.onListed) = (done, onListed)
      return !state.isWithdrawn
    }
    if isWanted { controller.ask(self) }
  }

  /// Records that the caller did not want to wait (O_NONBLOCK), so that no person was asked.
  public func noteUnasked() { controller.note(self, .wouldWait) }

  /// The caller does not wait any more.
  public func withdraw() {
    let wasWaiting = state.withLock { state in
      state.isWithdrawn = true
      return state.done.take() != nil
    }
    if wasWaiting { controller.withdraw(self) }
  }

  /// The rule that the person may choose to have written; nil: none.
  var offeredRule: OfferedRule? { writeRule == nil ? nil : subject.offeredRule }

  var isWithdrawn: Bool { state.withLock { $0.isWithdrawn } }

  /// The caller is about to get an answer without the secret. The request stays listed: approved when the process has ended, it
  /// holds for the next one that is shown in the same way (`AccessGrants`).
  ///
  /// To be called while the process is there.
  public func keepForNext() {
    guard subject.offersNext else { return }
    let executable = subject.caller.executable
    let digest =
      executable == nil || executable?.isFixed == true ? nil : subject.caller.digestOfExecutable() ?? ""
    state.withLock { $0.left = Left(digest: digest) }
  }

  /// Whether the caller was answered already.
  var isForNext: Bool { state.withLock { $0.left != nil } }

  /// Of an executable that its user can change.
  var digestForNext: String? { state.withLock { $0.left?.digest } }

  func noteListing() { state.withLock { $0.onListed.take() }?() }

  /// False: it was answered or withdrawn before.
  @discardableResult
  func finish(_ outcome: Outcome) -> Bool {
    guard let done = state.withLock({ $0.done.take() }) else { return false }
    done(outcome)
    return true
  }
}

extension PermissionRequest.Subject {
  func permit(password: ItemPassword? = nil) -> Permit {
    // The protection of one secret holds for all.
    let covered: ItemSecrets = operation == .change ? [.value, .otpauth] : secrets
    return Permit(item: item, for: operation, covered, to: caller, password: password)
  }

  /// The paths for the dialog: the item's, and those of its `otpauth:` URI and its code, each if the question is about it.
  var paths: [String] {
    guard operation != .change else { return [path] }
    var further = secrets.contains(.otpauth) ? [path + "/" + ItemSecrets.otpauthName] : []
    if secrets.contains(.code) { further.append(path + "/" + ItemSecrets.codeName) }
    return (further.isEmpty || secrets.contains(.value) ? [path] : []) + further
  }
}
