package import Platform
import SecretMemory

/// A program that runs with secrets until it ends, on the user's terminal.
///
/// It is a child and not this process itself by execve(2): a mount knows this process as `keyhole`, and a program that does not
/// let others see its executable would be taken for that. The child also has the files' pages locked by its parent, and no
/// descriptor of a vault.
package final class ProgramRun {
  /// How a program ended.
  package enum Ending: Equatable, Sendable {
    case exited(code: Int32)
    case signal(Int32)
  }

  /// The reaction to a change of a value.
  package enum Reaction: Sendable {
    case signal(Int32)
    /// The program is ended, and started with new values.
    case restart
  }

  /// Changes of the values.
  package struct Changes {
    let reaction: Reaction
    let news: WakePipe
    /// The present values; nil: they can't be had, and standard error says why.
    let renew: () -> ProgramSecrets?

    package init(_ reaction: Reaction, _ news: WakePipe, renew: @escaping () -> ProgramSecrets?) {
      (self.reaction, self.news, self.renew) = (reaction, news, renew)
    }
  }

  /// Changes that come together, as those of one import, count as one.
  private static let settling = Duration.milliseconds(100)
  /// A program that is to be restarted has so long to end by SIGTERM.
  private static let patience = Duration.seconds(10)
  /// In the background, whether a shell has given the terminal back is looked up so often: bash(1) sends no signal where it brings
  /// a job to the foreground that runs.
  private static let lookUp = Duration.milliseconds(100)
  /// SIGRTMAX, by which the leader of the program's session kills the program.
  private static let killOfMonitor: Int32 = 64

  /// All that a process may be sent and that tell of no fault of its own: of those, SIGPIPE is its output's.
  private static let forwarded: [Int32] =
    [
      1 /* HUP */, 2 /* INT */, 3 /* QUIT */, 10 /* USR1 */, 12 /* USR2 */, 14 /* ALRM */, 15 /* TERM */,
      16 /* STKFLT */,
      23 /* URG */, 24 /* XCPU */, 25 /* XFSZ */, 26 /* VTALRM */, 27 /* PROF */, 29 /* IO */, 30, /* PWR */
    ] + Array(34..<killOfMonitor)
  private static let (child, resumed, stopped, resized): (Int32, Int32, Int32, Int32) = (17, 18, 20, 28)
  /// By these the user, or a supervisor, ends the program: then it is not started again.
  private static let endings: Set<Int32> = [1, 2, 3, 15]

  /// Why output was lost where it was masked; nil: none was.
  package private(set) var loss: Errno?

  private let command: ProgramStart
  private let changes: Changes?
  private var secrets: ProgramSecrets
  private var output = ProgramOutput()
  private var signals: SignalQueue?
  private var process: Int32 = 0
  private var ending: Ending?
  private var renewed: ProgramSecrets?
  private var isRestarting = false
  private var (settled, killed): (ContinuousClock.Instant?, ContinuousClock.Instant?)

  package init(_ command: ProgramStart, _ secrets: consuming ProgramSecrets, changes: Changes?) {
    (self.command, self.changes) = (command, changes)
    self.secrets = secrets
  }

  /// Starts the program and waits for its end; once only.
  ///
  /// - Throws: `ProgramStart.Failure` for a program that can't be started; `Errno`, `SecretMemoryError`: nothing was started.
  package func run() throws -> Ending {
    // SIGTSTP too: if this process stopped before the program has, the shell would take the terminal while the program, as
    // less(1) does, still sets its modes.
    let signals = try SignalQueue(Self.forwarded + [Self.child, Self.resumed, Self.stopped, Self.resized])
    // A closed output is an error of the write.
    Signals.block([.pipe])
    self.signals = signals
    try start()
    while true {
      try wait(signals)
      if let ending, output.isDone {
        guard isRestarting, renewed != nil else { return ending }
        try restart()
      }
    }
  }
}

// MARK: - Starting

extension ProgramRun {
  private func start() throws {
    var command = command
    // They are open until the program has them.
    var kept: [KeptDescriptor] = []
    output = ProgramOutput()
    if let patterns = secrets.takePatterns() {
      output = try ProgramOutput(masking: patterns, for: &command, keep: &kept)
    }
    let numbers = Set(secrets.files.map(\.number))
    for (file, number) in secrets.files {
      var copy = KeptDescriptor(try Descriptor(duplicating: file.descriptor))
      kept.append(copy)
      // One that has the number of another file would be replaced by that. It is kept, so that the next has another one.
      while numbers.contains(copy.number) {
        copy = KeptDescriptor(try Descriptor(duplicating: file.descriptor))
        kept.append(copy)
      }
      command.streams.append(ProgramStart.Stream(copy.number, as: number))
    }
    if output.terminal != nil { SignalQueue.useTerminalInBackground() }
    // The signals of a terminal reach the program too once it is there.
    let early = earlySignals()
    do throws(ProgramStart.Failure) {
      process = try command.start(adding: secrets.variables.span)
    } catch {
      output = ProgramOutput()
      throw error
    }
    try secrets.forgetVariables()
    ending = nil
    withExtendedLifetime(kept) {}
    early.forEach(forward)
  }

  /// Signals that came before the program was there.
  private func earlySignals() -> [Int32] {
    var numbers: [Int32] = []
    while let signal = signals?.next() {
      if signal.number == Self.stopped || Self.forwarded.contains(signal.number) {
        numbers.append(signal.number)
      }
    }
    return numbers
  }

  private func restart() throws {
    guard let next = renewed.take() else { return }
    secrets = next
    (isRestarting, killed) = (false, nil)
    try start()
  }
}

// MARK: - Waiting

extension ProgramRun {
  private func wait(_ signals: SignalQueue) throws {
    let terminal = output.terminal?.entries ?? [Poll.Entry(nil), Poll.Entry(nil)]
    let news = ending == nil && renewed == nil ? changes?.news.readEnd : nil
    let entries =
      [Poll.Entry(signals.number), Poll.Entry(news)] + terminal + output.streams.flatMap(\.entries)
    let ready = try Poll.wait(for: entries, until: nextDeadline)
    for (index, stream) in output.streams.enumerated() {
      if ready[4 + 2 * index] { try stream.read() }
      if ready[5 + 2 * index] { stream.write() }
    }
    loss = loss ?? output.loss
    if ready[2], output.terminal?.read() == false { forward(Self.forwarded[0]) }
    if ready[3] { output.terminal?.write() }
    if ready[1] { noteChange() }
    if ready[0] { try takeSignals(signals) }
    try passTime(.now)
  }

  private var nextDeadline: ContinuousClock.Instant? {
    let nextLook = isInBackground ? ContinuousClock.now + Self.lookUp : nil
    return ([settled, killed, nextLook] + output.streams.map(\.deadline)).compactMap { $0 }.min()
  }

  private var isInBackground: Bool { ending == nil && output.terminal?.isInBackground == true }

  private func passTime(_ time: ContinuousClock.Instant) throws {
    if isInBackground { output.terminal?.take() }
    for stream in output.streams { try stream.flush(at: time) }
    if let settled, settled <= time { react() }
    if let killed, killed <= time {
      self.killed = nil
      SignalQueue.send(output.terminal == nil ? 9 : Self.killOfMonitor, to: process)
    }
  }

  private func takeSignals(_ signals: SignalQueue) throws {
    var (hasChild, isResumed) = (false, false)
    while let signal = signals.next() {
      switch signal.number {
      case Self.child: hasChild = true
      case Self.resumed: isResumed = true
      case Self.resized: if output.resize() { forward(signal.number) }
      case Self.stopped where ending != nil: stop()
      default: takeForProgram(signal)
      }
    }
    if isResumed { resume() }
    if hasChild { try followProgram(isResumed: isResumed) }
  }

  private func takeForProgram(_ signal: SignalQueue.Received) {
    // In one group, the terminal's signals have reached the program too.
    if !signal.isFromKernel || output.terminal != nil { forward(signal.number) }
    if Self.endings.contains(signal.number) { isRestarting = false }
    guard ending != nil, !output.isDone else { return }
    // No reader takes the rest of the output. Without a mask, the program would be ended while it writes that.
    output = ProgramOutput()
    if ending == .exited(code: 0) { ending = .signal(signal.number) }
  }

  private func forward(_ signal: Int32) {
    if ending == nil { SignalQueue.send(signal, to: process) }
  }

  private func resume() {
    if ending == nil { output.terminal?.resume() }
    forward(Self.resumed)
  }
}

// MARK: - The program's end, and its stops

extension ProgramRun {
  private func followProgram(isResumed: Bool) throws {
    guard ending == nil else { return }
    switch try ChildState(of: process) {
    case .unchanged: return
    case .stopped: if !isResumed { stop() }
    case .exited(let code): try end(.exited(code: code))
    case .ended(let signal): try end(.signal(signal))
    }
  }

  private func end(_ ending: Ending) throws {
    self.ending = ending
    (settled, killed) = (nil, nil)
    for stream in output.streams { try stream.drain() }
    output.terminal?.finish()
  }

  /// Stops as the program did, so that the shell of this process takes the terminal back. Goes on with SIGCONT, which comes
  /// as a signal.
  private func stop() {
    // Without a terminal there is no shell that a stopped group gives it back to: others of the group are not to stop with the program.
    guard ProcessFiles(CurrentProcess.number).status?.terminal != 0 else { return }
    output.terminal?.pause()
    SignalQueue.stopGroup()
    guard output.terminal != nil, let signals, !Poll.isReady(signals.number) else { return }
    // No shell can continue this group, so it was not stopped: nor may the program be.
    resume()
  }
}

// MARK: - Changes of values

extension ProgramRun {
  private func noteChange() {
    changes?.news.clear()
    settled = settled ?? .now + Self.settling
  }

  private func react() {
    settled = nil
    guard let changes, ending == nil else { return }
    switch changes.reaction {
    case .signal(let signal): forward(signal)
    case .restart:
      // Nothing is ended before the new values are there.
      renewed = changes.renew()
      guard renewed != nil else { return }
      isRestarting = true
      killed = .now + Self.patience
      forward(15)
    }
  }
}
