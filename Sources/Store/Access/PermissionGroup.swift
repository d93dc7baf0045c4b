public import Model
import Platform
import Synchronization

/// The permissions for several operations of one caller, of which a person is asked in as few dialogs as possible.
public final class PermissionGroup: Sendable {
  /// So many questions are open at once: a part of what `AccessController` lets wait.
  private static let mostAtOnce = 512

  fileprivate struct State {
    var permits: [Permit?]
    var next = 0
    /// How many of the questions that are open have no answer yet.
    var missing = 0
    var failure: StoreError?
    var open: [PermissionRequest] = []
    var done: (@Sendable (Result<[Permit], StoreError>) -> Void)?
  }

  private let permissions: [Permission]
  private let state: Mutex<State>

  /// - Parameter permissions: one for each operation; the permits come in the same order.
  public init(_ permissions: [Permission]) {
    self.permissions = permissions
    state = Mutex(State(permits: Array(repeating: nil, count: permissions.count)))
  }

  /// Asks. `done` is called once, on any thread, with a permit for each permission in their order, unless the group is
  /// withdrawn before.
  public func start(_ done: @escaping @Sendable (Result<[Permit], StoreError>) -> Void) {
    state.withLock { $0.done = done }
    startNext()
  }

  /// The caller does not wait any more.
  public func withdraw() {
    let open = state.withLock { state in
      state.done = nil
      return state.open
    }
    for request in open { request.withdraw() }
  }

  /// Records that the caller did not want to wait (O_NONBLOCK), so that no person was asked.
  public func noteUnasked() {
    for case .asked(let request) in permissions { request.noteUnasked() }
  }

  private func startNext() {
    let questions = state.withLock { $0.takeQuestions(from: permissions, atMost: Self.mostAtOnce) }
    guard !questions.isEmpty else { return finish() }
    for (index, request) in questions { request.start { [self] outcome in take(outcome, index) } }
  }

  private func take(_ outcome: PermissionRequest.Outcome, _ index: Int) {
    let isLast = state.withLock { state in
      switch outcome {
      case .success(let permit): state.permits[index] = permit
      case .failure(let error): state.failure = state.failure ?? error
      }
      state.missing -= 1
      return state.missing == 0
    }
    guard isLast else { return }
    if state.withLock({ $0.failure == nil }) { startNext() } else { finish() }
  }

  private func finish() {
    let (done, outcome) = state.withLock { state in
      state.open = []
      let outcome: Result<[Permit], StoreError> =
        state.failure.map { .failure($0) } ?? .success(state.permits.compactMap { $0 })
      return (state.done.take(), outcome)
    }
    done?(outcome)
  }
}

extension PermissionGroup {
  /// Waits for the answers; not for threads that others wait for.
  public func fetch() throws(StoreError) -> [Permit] {
    let answer = Promise<Result<[Permit], StoreError>>()
    start { answer.fulfill($0) }
    return try answer.wait().get()
  }
}

extension PermissionGroup.State {
  fileprivate mutating func takeQuestions(
    from permissions: [Permission], atMost limit: Int
  ) -> [(Int, PermissionRequest)] {
    var questions: [(Int, PermissionRequest)] = []
    while next < permissions.count, questions.count < limit {
      switch permissions[next] {
      case .given(let permit): permits[next] = permit
      case .asked(let request): questions.append((next, request))
      // A group takes single operations.
      case .askedTogether: break
      }
      next += 1
    }
    (missing, open) = (questions.count, questions.map(\.1))
    return questions
  }
}
