import Dispatch
import Notifier
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1))) struct ReplayScheduleTests {
  private static let first = Replay(.modification, Target(path: "a", isDirectory: false))
  private static let second = Replay(.modification, Target(path: "b", isDirectory: false))
  private let queue = DispatchQueue(label: "test")
  private let performer = Performer()

  private func schedule(
    _ isDue: @escaping ReplaySchedule<Target>.Condition = { _, start in
      start()
      return true
    }
  ) -> ReplaySchedule<Target> {
    let schedule = ReplaySchedule(on: queue, isDue)
    schedule.start(performer)
    return schedule
  }

  /// Ends the present replay, and returns the path of the next one.
  private func next() -> String? {
    performer.finish()
    queue.sync {}
    return performer.path
  }

  @Test func oneAtATimeInOrder() {
    let schedule = schedule()
    schedule.add([Self.first, Self.second])
    queue.sync {}
    #expect(performer.path == "a")
    #expect(next() == "b")
    #expect(next() == nil)
  }

  @Test func aReplayThatIsNotDueIsLeftOut() {
    let schedule = schedule { replay, start in
      guard replay.target.path != "a" else { return false }
      start()
      return true
    }
    schedule.add([Self.first, Self.second])
    queue.sync {}
    #expect(performer.path == "b")
  }

  @Test func onlyThePerformersThreadHasTheReplay() {
    let schedule = schedule()
    #expect(schedule.replay(of: Performer.thread) == nil && !schedule.isReplaying(Performer.thread))
    schedule.add([Self.first])
    queue.sync {}
    #expect(schedule.replay(of: Performer.thread) == Self.first && schedule.isReplaying(Performer.thread))
    #expect(schedule.replay(of: Performer.thread + 1) == nil && schedule.replay(of: 0) == nil)
    #expect(!schedule.isReplaying(Performer.thread + 1) && !schedule.isReplaying(0))
    #expect(next() == nil)
    #expect(schedule.replay(of: Performer.thread) == nil && !schedule.isReplaying(Performer.thread))
  }

  @Test func pauseWaitsForThePresentReplay() {
    let schedule = schedule()
    let pauses = Atomic(0)
    schedule.add([Self.first, Self.second])
    queue.sync {}
    schedule.pause { pauses.add(1, ordering: .relaxed) }
    #expect(pauses.load(ordering: .relaxed) == 0)
    #expect(next() == nil)
    #expect(pauses.load(ordering: .relaxed) == 1)
    // Nothing is under way now: it is called at once.
    schedule.pause { pauses.add(1, ordering: .relaxed) }
    #expect(pauses.load(ordering: .relaxed) == 2)
    schedule.resume()
    queue.sync {}
    #expect(performer.path == nil)
    schedule.resume()
    queue.sync {}
    #expect(performer.path == "b")
  }
}

private final class Performer: ReplayPerformer {
  static let thread: Int32 = 7

  private let state = Mutex<(path: String, done: @Sendable () -> Void)?>(nil)

  var thread: Int32 { Self.thread }

  /// Of the replay that is under way.
  var path: String? { state.withLock { $0?.path } }

  func perform(_ replay: Replay<some ReplayTarget>, done: @escaping @Sendable () -> Void) {
    state.withLock { $0 = (replay.target.path, done) }
  }

  func finish() {
    state.withLock { state in
      defer { state = nil }
      return state?.done
    }?()
  }
}
