import Dispatch
package import Model
import Notifier
import Platform
import Store
import Synchronization

/// Tells which suites of the user's running mount change, and which mount that is, for as long as it exists.
///
/// It outlives mounts: the next one is found by its note in the runtime folder.
package final class MountedSuitesWatch: Sendable {
  private struct State {
    var process: Int32?
    var stream: MessageChannel?
    var folder: FolderWatch?
    var isEnded = false
    /// The next attempt is planned.
    var isWaiting = false
  }

  private let runtimeFolder: String
  private let find: @Sendable () -> Int32?
  private let heard: @Sendable ([ExactString]?) -> Void
  private let threads = WaitingThreads()
  private let turns = SerialTurns()
  private let state = Mutex(State())

  /// Begins at once.
  ///
  /// - Parameters:
  ///   - runtimeFolder: the folder of sockets and notes.
  ///   - find: gives the process of the mount whose suites are followed; nil: there is none. It is called at each change in the folder.
  ///   - heard: gets the names of suites that may have changed, nil for all of them: also after a mount was found or has ended.
  package init(
    runtimeFolder: String, find: @escaping @Sendable () -> Int32?,
    heard: @escaping @Sendable ([ExactString]?) -> Void
  ) {
    (self.runtimeFolder, self.find, self.heard) = (runtimeFolder, find, heard)
    let watch = FolderWatch(runtimeFolder, .wholeFiles) { [weak self] news in
      if case .files(let names) = news, !names.contains(where: MountRegistration.isNote) { return }
      self?.look()
    }
    state.withLock { $0.folder = watch }
    // Connecting may take long. What is read meanwhile is looked at again after the first report.
    look()
  }

  deinit {
    state.withLock { state in
      state.isEnded = true
      state.stream?.shut()
    }
  }

  /// Follows the mount that is there now, in the place of another one: one look after the other, on a thread that may wait.
  private func look() {
    if !turns.run({ [weak self] in self?.lookNow() }) { lookLater() }
  }

  private func lookNow() {
    let process = find()
    let isOther = state.withLock { state in
      guard process != state.process, !state.isEnded else { return false }
      state.stream?.shut()
      (state.process, state.stream) = (process, nil)
      return true
    }
    guard isOther else { return }
    if process == nil { heard(nil) }
    guard let process, !follow(process) else { return }
    state.withLock { if $0.process == process { $0.process = nil } }
    lookLater()
  }

  /// A mount that refuses, or does not answer, is asked again after so long: until then changes are not noticed.
  private static let pause = DispatchTimeInterval.seconds(10)

  private func lookLater() {
    let isFirst = state.withLock { state in
      defer { state.isWaiting = true }
      return !state.isWaiting
    }
    guard isFirst else { return }
    Background.run(after: Self.pause) { [weak self] in
      guard let self else { return }
      state.withLock { $0.isWaiting = false }
      heard(nil)
      look()
    }
  }

  /// False: it can't be followed now.
  private func follow(_ process: Int32) -> Bool {
    guard
      let stream = try? ControlClient.connect(to: process, in: runtimeFolder, identified: false),
      stream.send(.askSuites(.watch))
    else { return false }
    let isWanted = state.withLock { state in
      guard state.process == process, !state.isEnded else { return false }
      state.stream = stream
      return true
    }
    guard isWanted else { return true }
    let isTaken = threads.run { [weak self, heard] in
      var wasHeard = false
      while stream.wait() == .input, case .suites(.changed(let suites))? = try? stream.receive().content {
        wasHeard = true
        heard(suites)
      }
      self?.lose(stream, wasHeard)
    }
    return isTaken
  }

  private func lose(_ stream: MessageChannel, _ wasHeard: Bool) {
    let isPresent = state.withLock { state in
      guard state.stream === stream else { return false }
      (state.process, state.stream) = (nil, nil)
      return true
    }
    guard isPresent else { return }
    heard(nil)
    // Where the mount is there and refuses, as it has too many, at once would be again and again.
    if wasHeard { look() } else { lookLater() }
  }
}
