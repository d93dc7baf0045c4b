import Notifier
import Testing

/// A target that stands for a file or directory by its path alone.
struct Target: ReplayTarget {
  let path: String
  let isDirectory: Bool
}

@Suite(.timeLimit(.minutes(1))) struct ReplayQueueTests {
  private func queue(_ replays: (ReplayKind, Target)...) -> [Replay<Target>] {
    var queue = ReplayQueue<Target>()
    for (kind, target) in replays { queue.add(Replay(kind, target)) }
    var due: [Replay<Target>] = []
    while let replay = queue.next() { due.append(replay) }
    return due
  }

  private let suite = Target(path: "s", isDirectory: true)
  private let key = Target(path: "s/k", isDirectory: false)

  @Test func directoriesComeFirstAndGoLast() {
    let other = Target(path: "s/o", isDirectory: false)
    #expect(queue((.creation, suite), (.creation, key)).map(\.target) == [suite, key])
    #expect(queue((.deletion, key), (.deletion, suite)).map(\.target) == [key, suite])
    // In addition to earlier replays of the directory.
    #expect(queue((.attributes, suite), (.deletion, key), (.deletion, suite)).map(\.target) == [key, suite])
    #expect(queue((.modification, key), (.creation, other)).map(\.target) == [key, other])
  }

  @Test func changesOfOneFileBecomeOne() {
    #expect(queue((.modification, key), (.modification, key)).map(\.kind) == [.modification])
    #expect(queue((.creation, key), (.modification, key)).map(\.kind) == [.creation])
    #expect(queue((.modification, key), (.deletion, key)).map(\.kind) == [.deletion])
    #expect(queue((.creation, key), (.deletion, key)).isEmpty)
    #expect(queue((.deletion, key), (.creation, key)).map(\.kind) == [.modification])
    #expect(queue((.deletion, suite), (.creation, suite)).isEmpty)
    #expect(queue((.modification, key), (.attributes, key)).map(\.kind) == [.modification, .attributes])
  }
}
