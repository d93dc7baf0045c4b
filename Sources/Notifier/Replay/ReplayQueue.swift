/// The replays that are due, in the order of the changes.
///
/// Changes of one file that waits are merged, so there are never more than a few replays for each file.
public struct ReplayQueue<Target: ReplayTarget>: Sendable {
  private struct Waiting {
    var kinds: Set<ReplayKind> = []
    /// The number of its last creation or deletion, or of its first other change.
    var number: UInt64
  }

  private var due: [Target: Waiting] = [:]
  private var count: UInt64 = 0
  /// The present batch, the next replay last.
  private var batch: [Replay<Target>] = []

  /// An empty queue.
  public init() {}

  /// Adds a replay; with those of the same file that wait it becomes one, or none where they cancel out.
  public mutating func add(_ replay: Replay<Target>) {
    count += 1
    var waiting = due[replay.target] ?? Waiting(number: count)
    // A directory comes before what is in it, and goes after it.
    if replay.kind <= .creation { waiting.number = count }
    waiting.kinds = Self.kinds(waiting.kinds, and: replay)
    due[replay.target] = waiting.kinds.isEmpty ? nil : waiting
  }

  private static func kinds(_ kinds: Set<ReplayKind>, and replay: Replay<Target>) -> Set<ReplayKind> {
    switch replay.kind {
    // A creation that was not replayed needs no deletion.
    case .deletion: kinds.contains(.creation) ? [] : [.deletion]
    // Neither was replayed: for watchers the file never went.
    case .creation where kinds.contains(.deletion): replay.target.isDirectory ? [] : [.modification]
    case .creation: kinds.union([.creation])
    case .modification, .attributes: kinds.contains(.creation) ? kinds : kinds.union([replay.kind])
    }
  }

  /// Removes the first replay; nil: none is due.
  public mutating func next() -> Replay<Target>? {
    if batch.isEmpty {
      batch = due.sorted { $0.value.number > $1.value.number }.flatMap { target, waiting in
        waiting.kinds.sorted(by: >).map { Replay($0, target) }
      }
      due = [:]
    }
    return batch.popLast()
  }
}
