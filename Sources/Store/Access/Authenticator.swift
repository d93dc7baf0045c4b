public import Model
import Synchronization

/// A way to ask a person: a dialog, a fingerprint reader, a program of the user's. Each runs as a process of its own.
public protocol Authenticator: Sendable {
  /// Asks, and returns when there is an answer, the time is over, or the question was withdrawn.
  ///
  /// It may block its thread for all that time.
  func ask(_ question: Question, _ withdrawal: Withdrawal) -> Answer

  /// Runs `body`, whose `ask` asks a person for a password again until it is right. What they type between two tries is neither shown
  /// nor taken as an answer.
  func withTries<Value>(_ body: (_ ask: @escaping (Question, Withdrawal) -> Answer) -> Value) -> Value
}

extension Authenticator {
  /// Each try is a question by itself.
  public func withTries<Value>(_ body: (_ ask: @escaping (Question, Withdrawal) -> Answer) -> Value) -> Value
  {
    body(ask)
  }
}

/// One question: who wants what, and what a person has to do for it.
public struct Question: Sendable {
  /// The password that the question asks for, besides what the flags demand.
  public enum Password: Sendable {
    case none
    /// The one that the item is sealed with.
    case present
    /// One to seal the item with.
    case new
    /// The passphrase of the vault, which the process that asks unlocks the vault with.
    case vault
  }

  /// The items' paths in the tree.
  public var items: [String]
  /// The items, by the keychain's own names for them, in the order of `items`.
  public var ids: [ItemID]
  /// Which secrets of each, where that is not the main one alone.
  public var secrets: [ItemID: ItemSecrets] = [:]
  /// The process that wants access, as it was when the question was made.
  public var caller: Caller.Identity
  /// The operation that the process requested.
  public var operation: AccessOperation
  /// nil: the operation is no change of protection.
  public var change: ProtectionChange?
  /// nil: only the password.
  public var demand: Demand?
  /// Which password the dialog asks for; `none` for items without the flag `applicationPassword`.
  public var password: Password
  /// How often a wrong password was given before.
  public var failures = 0
  /// In seconds.
  public var timeout: Int
  /// How long the answer holds, in seconds: for this operation of this process with these items.
  public var reuse: Int
  /// Whether the person is offered to answer also for other items with the same conditions that the process opens in
  /// the same way meanwhile: it has asked before.
  public var offersProcess = false
  /// Whether the person is offered an answer that holds as long as the session of the caller (`Answer.Scope.session`).
  public var offersSession = false
  /// The change of the items' rules that the person is offered; nil: none.
  public var offeredRule: OfferedRule?
  /// The question is answered by `keyhole approve`, typed here; nil: the caller itself waits where it is asked.
  public var approver: Caller.Identity?
  /// How long the approval holds that `keyhole approve` asks for, which the person has to see.
  public var approvedScope = Answer.Scope.items
  /// Whether the approval holds, where the caller has ended, once for the next process that is shown in the same way: it was
  /// answered without the secret.
  public var approvesNext = false
}

extension Question {
  /// The question for the passphrase of a locked vault.
  ///
  /// - Parameters:
  ///   - path: of the wanted file, in the tree.
  ///   - caller: the process that wants it.
  ///   - timeout: in seconds.
  package init(forPassphraseToOpen path: String, by caller: Caller.Identity, timeout: Int) {
    self.init(
      items: [path], ids: [], caller: caller, operation: .read, demand: nil, password: .vault,
      timeout: timeout,
      reuse: 0)
  }
}

/// A rule for the caller's program that a person may have written instead of answering each time.
public struct OfferedRule: Sendable {
  /// The path that the rule will have: that of the script, of an interpreter.
  public var program: ExactString
  /// The demand of a change of the items' rules, where it is more than that of the question.
  public var demand: Demand?

  /// - Parameters:
  ///   - program: an absolute path.
  ///   - demand: the demand of a change of the rules; nil: nothing more than the question demands.
  public init(program: ExactString, demand: Demand?) {
    (self.program, self.demand) = (program, demand)
  }
}

/// The effects of a change of protection.
public struct ProtectionChange: Sendable {
  /// For a person, a line each: `access flags: userPresence → none`. Empty: the process that asks did not say.
  public var lines: [String]
  /// Whether something is taken off: a flag, all rules, the folder whose rules hold.
  public var removesProtection: Bool

  /// - Parameters:
  ///   - lines: what the dialog shows of the change.
  ///   - removesProtection: whether a program may get the secret afterwards that could not before.
  public init(lines: [String], removesProtection: Bool) {
    self.lines = lines
    self.removesProtection = removesProtection
  }

  /// The change is not known, so it may be any.
  public static let unknown = ProtectionChange(lines: [], removesProtection: true)
}

/// The result of a question.
public enum Answer: Sendable {
  /// The scope of the user's approval.
  public enum Scope: Sendable {
    /// The items that the question named.
    case items
    /// These, and others with the same conditions that the process opens for the same operation, as the question
    /// offered.
    case process
    /// The items that the question named, for the same program in the same session, until that ends or the keychain is
    /// locked.
    case session
    /// The items that the question named, for the same program, by a rule that is written.
    case always
  }

  case approved(ItemPassword?, scope: Scope = .items)
  case refused
  /// Refused, and a rule is written that keeps the program out.
  case never
  /// Wrong too often.
  case rejected
  /// Other fingers are enrolled than were when the item was stored.
  case revoked
  case timedOut
  /// The keychain is locked, as the mount says that asks.
  case locked
  /// No person can be asked; the reason is for a person.
  case impossible(String)
}

/// The end of a question before its answer: the caller is gone.
public final class Withdrawal: Sendable {
  private struct State {
    var isWithdrawn = false
    var handler: (@Sendable () -> Void)?
  }

  private let state = Mutex(State())

  /// Begins without a handler, and not withdrawn.
  public init() {}

  /// Whether `withdraw()` was called.
  public var isWithdrawn: Bool { state.withLock { $0.isWithdrawn } }

  /// Has `handler` called when the question is withdrawn; now, if it is already. nil: nothing more is to be done.
  ///
  /// It must be short, and not use the withdrawal.
  public func whenWithdrawn(_ handler: (@Sendable () -> Void)?) {
    state.withLock { state in
      if state.isWithdrawn { handler?() } else { state.handler = handler }
    }
  }

  /// Ends the question, and calls the handler before it returns. A second call has no effect.
  public func withdraw() {
    state.withLock { state in
      state.isWithdrawn = true
      // Under the lock: afterwards what it ends may have gone, and its number be another's.
      state.handler.take()?()
    }
  }
}
