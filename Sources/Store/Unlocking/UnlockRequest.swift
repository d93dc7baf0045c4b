public import Model
import Platform
import SecretMemory
import Synchronization

/// A wait for a locked keychain to be unlocked. Nothing happens until `start`.
public final class UnlockRequest: Sendable {
  /// The result of a request that was not withdrawn.
  public enum Outcome: Equatable, Sendable {
    case unlocked
    /// The reason is for a person, and holds no secret.
    case stillLocked(reason: String)
  }

  /// Unlocks the keychain. - Throws: `rejected` for a wrong passphrase.
  typealias Unlock = @Sendable (borrowing SecretBytes) throws(StoreError) -> Void

  struct Subject: Sendable {
    /// The path in the tree that the process wants.
    var path: String
    var caller: Caller.Identity

    /// The processes that one refusal is valid for, as they were when the process asked.
    let tree: ProcessTree

    init(path: String, caller: Caller.Identity) {
      (self.path, self.caller) = (path, caller)
      tree = ProcessTree(of: caller)
    }
  }

  let subject: Subject
  private let opener: Unlock
  private let controller: UnlockController
  private let state = Mutex(State())

  private struct State {
    var done: (@Sendable (Outcome) -> Void)?
    var onListed: (@Sendable () -> Void)?
    var isWithdrawn = false
    var failure: StoreError?
  }

  init(_ subject: Subject, _ controller: UnlockController, unlock: @escaping Unlock) {
    (self.subject, self.controller, opener) = (subject, controller, unlock)
  }

  /// Asks, or joins the question that is open. `done` is called once, on any thread, unless the request is withdrawn before;
  /// `onListed` when no dialog could be shown, so that the request waits for `keyhole approve`.
  public func start(
    onListed: (@Sendable () -> Void)? = nil, _ done: @escaping @Sendable (Outcome) -> Void
  ) {
    let isWanted = state.withLock { state in
      (state.done, state.onListed) = (done, onListed)
      return !state.isWithdrawn
    }
    if isWanted { controller.ask(self) }
  }

  /// The caller does not wait any more.
  public func withdraw() {
    let wasWaiting = state.withLock { state in
      state.isWithdrawn = true
      return state.done.take() != nil
    }
    if wasWaiting { controller.withdraw(self) }
  }

  /// The error, other than a wrong passphrase, with which unlocking failed, as a missing key file; nil: there was none.
  public var failure: StoreError? { state.withLock { $0.failure } }

  /// Unlocks the keychain. - Throws: `rejected` for a wrong passphrase; what else keeps it locked.
  func unlock(_ passphrase: borrowing SecretBytes) throws(StoreError) {
    do throws(StoreError) { try opener(passphrase) } catch {
      if error != .rejected, error != .locked { state.withLock { $0.failure = error } }
      throw error
    }
  }

  var isWithdrawn: Bool { state.withLock { $0.isWithdrawn } }

  func noteListing() { state.withLock { $0.onListed.take() }?() }

  func finish(_ outcome: Outcome) {
    state.withLock { $0.done.take() }?(outcome)
  }
}

extension UnlockRequest {
  /// Waits for the answer; not for threads that others wait for.
  ///
  /// - Throws: `locked` where the keychain is still locked, or `failure`.
  public func fetch() throws(StoreError) {
    let answer = Promise<Outcome>()
    start { answer.fulfill($0) }
    guard answer.wait() == .unlocked else { throw failure ?? .locked }
  }
}
