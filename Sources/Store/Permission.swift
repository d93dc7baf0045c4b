import Dispatch
public import Model
import Synchronization

/// The right to one item's secret: from rules that let the asker in, or from a person's answer.
public struct Permit: Sendable {
  let item: ItemID
  /// What the item is sealed with besides; nil: nothing.
  public let password: ItemPassword?

  /// The permit for an item that was new when this one was given, and is stored now; else this one.
  public func stored(as item: Item) -> Permit {
    self.item.rawValue.isEmpty ? Permit(item: item.id, password: password) : self
  }
}

/// Whether an item's secret is given to an asker.
public enum Permission: Sendable {
  case given(Permit)
  /// Somebody has to be asked first.
  case asked(PermissionRequest)
}

extension Permission {
  /// Waits for the answer where somebody has to be asked; not for threads that others wait for.
  public func fetch() throws(StoreError) -> Permit {
    switch self {
    case .given(let permit): return permit
    case .asked(let request):
      let (isThere, answer) = (DispatchSemaphore(value: 0), Waiting())
      request.start { outcome in
        answer.outcome.withLock { $0 = outcome }
        isThere.signal()
      }
      isThere.wait()
      return try (answer.outcome.withLock { $0 } ?? .failure(.interrupted)).get()
    }
  }

  private final class Waiting: Sendable {
    let outcome = Mutex<PermissionRequest.Outcome?>(nil)
  }
}

/// A question that has to be put before a secret is given. Nothing happens until `start`.
public final class PermissionRequest: Sendable {
  public typealias Outcome = Result<Permit, StoreError>

  let item: ItemID
  let path: String
  let operation: AccessEvent.Operation
  let asker: Asker
  let demand: Demand?
  let password: Question.Password
  /// Throws `rejected` where a password is not the item's, and makes a new one ready.
  let check: @Sendable (ItemPassword) throws(StoreError) -> Void
  private let gatekeeper: Gatekeeper
  private let state = Mutex(State())

  private struct State {
    var done: (@Sendable (Outcome) -> Void)?
    var isWithdrawn = false
  }

  init(
    _ item: ItemID, _ path: String, _ operation: AccessEvent.Operation, _ asker: Asker, _ demand: Demand?,
    _ password: Question.Password,
    _ gatekeeper: Gatekeeper, check: @escaping @Sendable (ItemPassword) throws(StoreError) -> Void
  ) {
    (self.item, self.path, self.operation) = (item, path, operation)
    (self.asker, self.demand) = (asker, demand)
    (self.password, self.gatekeeper, self.check) = (password, gatekeeper, check)
  }

  /// Puts the question. `done` is called once, on any thread, unless the request is withdrawn before.
  public func start(_ done: @escaping @Sendable (Outcome) -> Void) {
    let isWanted = state.withLock { state in
      state.done = done
      return !state.isWithdrawn
    }
    if isWanted { gatekeeper.put(self) }
  }

  /// Whoever asked does not wait any more.
  public func withdraw() {
    let wasWaiting = state.withLock { state in
      state.isWithdrawn = true
      return state.done.take() != nil
    }
    if wasWaiting { gatekeeper.withdraw(self) }
  }

  var isWithdrawn: Bool { state.withLock { $0.isWithdrawn } }

  /// False: it was answered or withdrawn before.
  @discardableResult
  func finish(_ outcome: Outcome) -> Bool {
    guard let done = state.withLock({ $0.done.take() }) else { return false }
    done(outcome)
    return true
  }
}
