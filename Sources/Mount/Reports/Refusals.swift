public import Model
import Synchronization
import Tree

/// The latest refusals with their reasons, for `keyhole status`: an errno says less.
public final class Refusals: Sendable {
  /// One refusal. It never holds content.
  public struct Entry: Sendable {
    /// When the operation was refused.
    public let time: Timestamp
    /// The path from the top of the tree, without a leading slash.
    public let path: String
    /// The error's message.
    public let reason: String
  }

  private static let limit = 20
  private let entries = Mutex<[Entry]>([])

  init() {}

  /// The last ones, the newest last.
  public var recent: [Entry] { entries.withLock { $0 } }

  /// One attempt is refused more than once, by the write and by the close: it stands there once.
  func note(path: String, reason: String) {
    entries.withLock { entries in
      if let last = entries.last, last.path == path, last.reason == reason { entries.removeLast() }
      if entries.count == Self.limit { entries.removeFirst() }
      entries.append(Entry(time: .now, path: path, reason: reason))
    }
  }

  func note(path: String, _ error: StoreError) {
    guard error.isWorthTelling else { return }
    note(path: path, reason: error.message)
  }
}

extension StoreError {
  /// Whether a person would want to know why; that a file is missing, or an attribute, explains itself.
  var isWorthTelling: Bool {
    switch self {
    case .notFound, .noSuchAttribute, .unsupported, .exists, .resultTooLarge, .isDirectory, .notDirectory:
      false
    default: true
    }
  }
}
