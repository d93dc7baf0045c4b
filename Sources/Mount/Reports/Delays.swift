public import Model
import Store
import Synchronization
import Tree

/// Operations that took long lately: a store that hangs, another process's lock, a slow disk. Time in which the user is
/// asked does not count.
public final class Delays: Sendable {
  /// One operation that took long.
  public struct Entry: Sendable {
    /// When the operation ended.
    public let time: Timestamp
    /// The path from the top of the tree, without a leading slash.
    public let path: String
    /// How long the operation took.
    public let milliseconds: Int
  }

  /// From here on a person who waits notices.
  static let noticeable = Duration.milliseconds(250)
  private static let limit = 20
  private let entries = Mutex<[Entry]>([])

  init() {}

  /// The last ones, the newest last.
  public var recent: [Entry] { entries.withLock { $0 } }

  /// Notes an operation that has ended now, if it took long.
  func note(_ duration: Duration, path: @autoclosure () -> String) {
    guard duration >= Self.noticeable else { return }
    let entry = Entry(time: .now, path: path(), milliseconds: Int(duration / .milliseconds(1)))
    entries.withLock { entries in
      if entries.count == Self.limit { entries.removeFirst() }
      entries.append(entry)
    }
  }
}
