import Synchronization

/// A request that waits for `keyhole approve` or `keyhole deny`: there was neither a window nor a terminal to ask in.
public struct ListedRequest: Sendable {
  /// The purpose of the program.
  public enum Purpose: Hashable, Sendable {
    /// An operation on guarded items.
    case access(AccessOperation)
    /// To open a secret of a locked keychain.
    case unlock

    /// The word for it in lists: that of the operation, or `unlock`.
    public var word: String {
      switch self {
      case .access(let operation): operation.rawValue
      case .unlock: "unlock"
      }
    }

    /// The purpose that a word stands for; nil: none.
    public init?(word: String) {
      if word == Self.unlock.word {
        self = .unlock
      } else if let operation = AccessOperation(rawValue: word), operation != .record {
        self = .access(operation)
      } else {
        return nil
      }
    }
  }

  /// The number that `keyhole approve` takes; a later request has a higher one.
  public var number: UInt32
  /// The paths of the items, as in the question.
  public var paths: [String]
  /// The purpose of the program.
  public var purpose: Purpose
  /// The process that waits.
  public var caller: Caller.Identity
  /// Why the question could not be asked, for a person.
  public var reason: String
  /// In how many seconds it ends by itself.
  public var secondsLeft: Int
}

/// The numbers of listed requests. The controllers of one keychain share them, so that each number means one request.
public final class RequestNumbers: Sendable {
  private let last = Atomic<UInt32>(0)

  /// The first number is 1.
  public init() {}

  func next() -> UInt32 { last.wrappingAdd(1, ordering: .relaxed).newValue }
}
