import Dispatch
import KeychainSelection
import Notifier
import Platform
import Store
import Synchronization

/// The process that performs replays, started with the first one (`ReplayWorker` is its other side).
final class ReplayProcess: ReplayPerformer {
  /// @unchecked: a dispatch source may be cancelled from any thread; Dispatch does not say so to Swift.
  private struct Running: @unchecked Sendable {
    var process: Int32
    var channel: StreamSocket
    var answers: any DispatchSourceRead
  }

  private struct State {
    var running: Running?
    var done: (@Sendable () -> Void)?
    /// How often it could not be started, or ended by itself.
    var failures = 0
  }

  /// After so many ends it is not started again: it is being ended on purpose.
  private static let patience = 5

  private let mountPoint: String
  private let queue = DispatchQueue(label: "keyhole.echo")
  private let state = Mutex(State())
  private let number = Atomic<Int32>(0)

  init(_ mountPoint: String) {
    self.mountPoint = mountPoint
  }

  deinit { stop() }

  var thread: Int32 { number.load(ordering: .acquiring) }

  /// Why watchers of the mount get no events for changes from outside; nil: they do.
  var problem: String? {
    guard state.withLock({ $0.failures }) >= Self.patience else { return nil }
    return
      "inotify on the mount tells no outside changes: the process that replays them ended \(Self.patience) times"
  }

  func perform(_ replay: Replay<some ReplayTarget>, done: @escaping @Sendable () -> Void) {
    queue.async { [self] in
      guard let channel = channel() else { return done() }
      state.withLock { $0.done = done }
      let line = Array(ReplayLine.text(of: replay).utf8)
      // It takes one line at a time, so that there is room for it.
      if (try? channel.send(line.span, until: .now)) == nil { ended() }
    }
  }

  /// Ends the process. Replays that are still asked for start another one.
  func stop() {
    guard let running = state.withLock({ $0.running.take() }) else { return }
    end(running)
  }

  private func channel() -> StreamSocket? {
    if let running = state.withLock({ $0.running }) { return running.channel }
    guard state.withLock({ $0.failures < Self.patience }), let new = start() else { return nil }
    state.withLock { $0.running = new }
    number.store(new.process, ordering: .releasing)
    return new.channel
  }

  private func start() -> Running? {
    guard let device = MountTable().entry(at: mountPoint)?.device else { return nil }
    guard let (channel, its) = try? StreamSocket.pair() else { return nil }
    let command = ["keyhole", "echo-changes", "--", device, mountPoint]
    let started = withExtendedLifetime(its) {
      try? spawn(
        "/proc/self/exe", command, environment: [],
        streams: [.descriptor(its.number, as: ReplayWorker.channel)], in: .own)
    }
    guard let process = started else {
      state.withLock { $0.failures += 1 }
      return nil
    }
    let answers = DispatchSource.makeReadSource(fileDescriptor: channel.number, queue: queue)
    answers.setEventHandler { [weak self] in self?.listen(to: channel) }
    // The socket is closed when it is not read any more.
    answers.setCancelHandler { withExtendedLifetime(channel) {} }
    answers.activate()
    return Running(process: process, channel: channel, answers: answers)
  }

  /// Reads until nothing is there: with the end of the process after its answer, Dispatch calls this for the last time.
  private func listen(to channel: StreamSocket) {
    var bytes: [UInt8] = [0]
    var span = bytes.mutableSpan
    do throws(Errno) {
      while let received = try channel.receive(into: &span) {
        guard received.count == 1 else { return ended() }
        state.withLock { $0.done.take() }?()
      }
    } catch {
      ended()
    }
  }

  /// It is gone: then so is its right to be believed, before its number can be another's.
  private func ended() {
    let (running, done) = state.withLock { state in
      state.failures += 1
      return (state.running.take(), state.done.take())
    }
    if let running { end(running) }
    done?()
  }

  private func end(_ running: Running) {
    number.store(0, ordering: .releasing)
    running.answers.cancel()
    // It may sit in a call that the mount's end will end; the number is taken until it is reaped.
    running.channel.shutDown()
    let process = running.process
    ProcessNumber.send(.kill, to: process)
    Background.run { waitForChild(process) }
  }
}
