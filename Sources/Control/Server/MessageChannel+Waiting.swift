import Model
import Platform
import Store

// One way to wait for what takes long while the other side of a connection waits.
extension MessageChannel {
  /// How often the other side gets a sign that it goes on.
  private static let pulse = Duration.seconds(3)

  /// The result that another thread gives to `done`. `start` begins the work.
  ///
  /// - Throws: the error that `done` got, or that of `start`; `interrupted` where the other side is gone.
  func fetch<Value: Sendable>(
    _ start: (_ done: @escaping @Sendable (Result<Value, StoreError>) -> Void) throws(StoreError) -> Void
  ) throws(StoreError) -> Value {
    let (result, isDone) = (Promise<Result<Value, StoreError>>(), try Self.makeWakePipe())
    try start {
      result.fulfill($0)
      isDone.wake()
    }
    while true {
      switch wait(or: isDone, until: .now + Self.pulse) {
      case .wake: return try result.wait().get()
      case .late: send(.pending)
      case .input: throw .interrupted
      }
    }
  }

  /// - Throws: `tooManyOpen`.
  static func makeWakePipe() throws(StoreError) -> WakePipe {
    do throws(Errno) { return try WakePipe() } catch { throw StoreError(error, "pipe") }
  }
}

extension PermissionGroup {
  /// As `fetch()`, and tells the other side meanwhile that it goes on.
  ///
  /// - Throws: `interrupted` where the other side is gone; the questions are withdrawn then.
  func fetch(reportingTo channel: MessageChannel) throws(StoreError) -> [Permit] {
    do throws(StoreError) {
      return try channel.fetch { done in start(done) }
    } catch {
      withdraw()
      throw error
    }
  }
}

extension Permission {
  /// As `PermissionGroup.fetch(reportingTo:)`, for one.
  func fetch(reportingTo channel: MessageChannel) throws(StoreError) -> Permit {
    switch self {
    case .given(let permit): return permit
    case .askedTogether(let group): return Permit(joining: try group.fetch(reportingTo: channel))
    case .asked: break
    }
    guard let permit = try PermissionGroup([self]).fetch(reportingTo: channel).first else {
      throw .interrupted
    }
    return permit
  }
}
