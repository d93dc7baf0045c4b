import CSystem
import Dispatch
import Glibc
import KeychainSelection
import Notifier
import Platform
import Store
import Synchronization

/// The process that performs replays, started with the first one (`ReplayWorker` is its other side).
final class ReplayProcess: ReplayPerformer {
  /// @unchecked: a dispatch source may be cancelled from any thread; Dispatch does not say so to Swift.
  private struct Running: @unchecked Sendable {
    var process: pid_t
    var channel: Int32
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
      if !write(ReplayLine.text(of: replay), to: channel) { ended() }
    }
  }

  /// Ends the process. Replays that are still asked for start another one.
  func stop() {
    guard let running = state.withLock({ $0.running.take() }) else { return }
    end(running)
  }

  private func channel() -> Int32? {
    if let running = state.withLock({ $0.running }) { return running.channel }
    guard state.withLock({ $0.failures < Self.patience }), let new = start() else { return nil }
    state.withLock { $0.running = new }
    number.store(new.process, ordering: .releasing)
    return new.channel
  }

  private func start() -> Running? {
    guard let device = MountTable().entry(at: mountPoint)?.device else { return nil }
    var ends: [Int32] = [0, 0]
    guard unsafe linux_socket_pair(&ends) == 0 else { return nil }
    defer { close(ends[1]) }
    let command = ["keyhole", "echo-changes", "--", device, mountPoint]
    let started = spawn(
      "/proc/self/exe", command, environment: [], channel: (own: ends[1], its: ReplayWorker.channel),
      inOwnGroup: true)
    guard case .success(let process) = started else {
      close(ends[0])
      state.withLock { $0.failures += 1 }
      return nil
    }
    let channel = ends[0]
    let answers = DispatchSource.makeReadSource(fileDescriptor: channel, queue: queue)
    answers.setEventHandler { [weak self] in self?.listen(to: channel) }
    answers.setCancelHandler { close(channel) }
    answers.activate()
    return Running(process: process, channel: channel, answers: answers)
  }

  private func listen(to channel: Int32) {
    var byte: UInt8 = 0
    let count = unsafe read(channel, &byte, 1)
    if count < 0, errno == EINTR || errno == EAGAIN { return }
    guard count == 1 else { return ended() }
    state.withLock { $0.done.take() }?()
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
    shutdown(running.channel, Int32(SHUT_RDWR))
    let process = running.process
    kill(process, SIGKILL)
    Background.run { waitForChild(process) }
  }

  private func write(_ text: String, to channel: Int32) -> Bool {
    let bytes = Array(text.utf8)
    // SAFETY: the buffer says how long it is. One line always fits; the process may be gone, which is no signal.
    let sent = unsafe bytes.withUnsafeBytes {
      unsafe send(channel, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
    }
    return sent == bytes.count
  }
}
