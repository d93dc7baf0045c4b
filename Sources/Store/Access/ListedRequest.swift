import Platform
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

/// The numbers of listed requests. The controllers of one keychain share them, and all processes that use one file, so that each
/// number means one request.
public final class RequestNumbers: Sendable {
  private static let digits = 9
  private static let highest: UInt32 = 999_999_999
  /// So often a file that another process has locked is tried, a millisecond apart.
  private static let attempts = 50

  private let last = Mutex<UInt32>(0)
  /// nil: no other process has requests.
  private let file: String?

  /// The first number is 1.
  ///
  /// - Parameter file: has the last number of all processes that use it; where it can't be used, the numbers are this process's own.
  public init(file: String? = nil) { self.file = file }

  func next() -> UInt32 {
    last.withLock { last in
      last = (try? nextOfAll(after: last)) ?? Self.following(last)
      return last
    }
  }

  private static func following(_ number: UInt32) -> UInt32 { number < highest ? number + 1 : 1 }

  /// nil: there is no file, or another process keeps it locked.
  private func nextOfAll(after last: UInt32) throws(Errno) -> UInt32? {
    guard let file else { return nil }
    let open = try Descriptor(file, [.readingAndWriting, .create, .noFollow])
    var attempt = 1
    while try !open.tryLock() {
      guard attempt < Self.attempts else { return nil }
      attempt += 1
      Pause.microseconds(1000)
    }
    let text = String(decoding: try open.read(Self.digits), as: UTF8.self)
    let number = Self.following(UInt32(text, radix: 10) ?? last)
    let digits = "\(number)"
    let padding = String(repeating: "0", count: Self.digits - digits.count)
    try open.write(Array((padding + digits).utf8).span, at: 0)
    return number
  }
}
