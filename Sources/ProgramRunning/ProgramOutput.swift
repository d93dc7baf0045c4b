import Platform
import SecretMemory

/// The streams and the terminal between a program and this process's standard streams.
///
/// **Without a mask, nothing.** The program has the terminal itself and is in this process's group: job control, the size of the
/// window, modes and signals are the kernel's, as if it was started by the shell. A pseudo-terminal could only be worse at that:
/// it takes typed input that the program does not want, and ends with this process.
///
/// **With a mask** each output goes through this process. An output that is a terminal becomes a pseudo-terminal, every other
/// one a pipe. Where standard output is a terminal, the pseudo-terminal is the controlling one of a session for the program,
/// and what is typed passes to it. Where only standard error is one, as in `keyhole run … | less`, the program keeps the
/// user's terminal as its controlling one: the program behind the pipe reads that.
final class ProgramOutput {
  private(set) var streams: [MaskedStream] = []
  /// nil: the program has the user's terminal.
  private(set) var terminal: TerminalBetween?
  /// The size of a pseudo-terminal that is not the program's controlling one.
  private var sized: KeptDescriptor?

  /// Nothing stands between.
  init() {}

  /// Adds to `start` the streams that the program gets. They have to stay open until it is started: `keep` has them.
  init(
    masking patterns: MaskPatterns, for start: inout ProgramStart, keep: inout [KeptDescriptor]
  ) throws {
    let terminals = [StandardStream.output, .errors].filter(\.isTerminal)
    if let first = terminals.first { try addTerminal(like: first, terminals, patterns, &start, &keep) }
    try addPipes([StandardStream.output, .errors].filter { !$0.isTerminal }, patterns, &start, &keep)
  }

  private func addTerminal(
    like first: StandardStream, _ outputs: [StandardStream], _ patterns: MaskPatterns,
    _ start: inout ProgramStart, _ keep: inout [KeptDescriptor]
  ) throws {
    let pseudo = try PseudoTerminal(like: first.number)
    let user = first == .output ? TerminalBetween.user() : nil
    let inputs: [StandardStream] = user != nil && StandardStream.input.isTerminal ? [.input] : []
    let emulator = try Descriptor(copying: pseudo.emulator)
    let other = try Descriptor(copying: pseudo.emulator)
    let program = KeptDescriptor(try Descriptor(copying: pseudo.program))
    keep.append(program)
    for stream in outputs + inputs {
      start.streams.append(ProgramStart.Stream(program.number, as: stream.number))
    }
    streams.append(try MaskedStream(emulator, to: first.number, patterns, .terminal))
    if let user {
      start.terminal = program.number
      let rest = try PipeEnds()
      let writer = KeptDescriptor(try Descriptor(copying: rest.writer))
      keep.append(writer)
      start.rest = writer.number
      terminal = try TerminalBetween(user, other, rest.readerOnly())
    } else {
      // Ends of lines are the user's terminal's to make.
      try TerminalModes(of: program.number).passingBytes.set(on: program.number)
      sized = KeptDescriptor(other)
    }
  }

  private func addPipes(
    _ outputs: [StandardStream], _ patterns: MaskPatterns, _ start: inout ProgramStart,
    _ keep: inout [KeptDescriptor]
  ) throws {
    let areOne = outputs.count == 2 && FileID("/proc/self/fd/1") == FileID("/proc/self/fd/2")
    // One pipe for both keeps the order of what is written.
    for output in areOne ? [.output] : outputs {
      let pipe = try PipeEnds()
      let writer = KeptDescriptor(try Descriptor(copying: pipe.writer))
      keep.append(writer)
      start.streams.append(ProgramStart.Stream(writer.number, as: output.number))
      if areOne { start.streams.append(ProgramStart.Stream(writer.number, as: StandardStream.errors.number)) }
      streams.append(try MaskedStream(pipe.readerOnly(), to: output.number, patterns, .file))
    }
  }

  /// Takes over the size of the user's window. - Returns: whether the program has to be sent SIGWINCH.
  func resize() -> Bool {
    terminal?.resize()
    guard let sized else { return false }
    WindowSize(of: StandardStream.output.number)?.set(on: sized.number)
    return true
  }

  /// Why output was lost; nil: none was so far.
  var loss: Errno? { streams.lazy.compactMap(\.loss).first }

  /// Whether no more output waits: it was written, or is lost.
  var isDone: Bool { streams.allSatisfy(\.isDone) }
}

/// A descriptor that is closed with the last reference.
final class KeptDescriptor {
  let descriptor: Descriptor

  init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

  var number: Int32 { descriptor.number }
}
