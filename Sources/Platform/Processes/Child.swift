import Glibc

/// A program that was started and is read from.
///
/// It gets a group of its own, so that all of it can be ended, and standard streams as asked; nothing else.
package final class Child {
  package let process: Int32
  /// Its standard output, to be read.
  package let output: Int32
  /// Its standard input, to be written; -1: it has ours.
  package private(set) var input: Int32
  private let hasOwnGroup: Bool
  private var status: Int32?

  package enum Input {
    case shared
    /// In a session of its own, so that all that it starts can be ended with it.
    case piped
    case pipedInOurGroup
    /// /dev/null.
    case nothing
  }

  package enum Errors {
    case shared
    /// They go to /dev/null.
    case discarded
  }

  package init(
    _ words: [String], input kind: Input = .shared, errors: Errors = .shared, environment: [String]? = nil
  ) throws(SpawnFailure) {
    let (outputEnd, theirOutput) = try Self.pipe(for: words[0])
    let isPiped = kind == .piped || kind == .pipedInOurGroup
    let (theirInput, inputEnd): (Int32, Int32)
    do throws(SpawnFailure) {
      (theirInput, inputEnd) = isPiped ? try Self.pipe(for: words[0]) : (-1, -1)
    } catch {
      for end in [outputEnd, theirOutput] { close(end) }
      throw error
    }
    defer { for end in [theirOutput, theirInput] where end >= 0 { close(end) } }
    (output, input, hasOwnGroup) = (outputEnd, inputEnd, kind == .piped)
    var streams = [SpawnStream.descriptor(theirOutput, as: STDOUT_FILENO)]
    if isPiped { streams.append(.descriptor(theirInput, as: STDIN_FILENO)) }
    if kind == .nothing { streams.append(.nothing(as: STDIN_FILENO)) }
    if errors == .discarded { streams.append(.nothing(as: STDERR_FILENO)) }
    do throws(SpawnFailure) {
      // With a group of its own it has a session of its own too: it must not take signals of the terminal.
      process = try spawn(
        words[0], words, environment: environment, streams: streams, in: hasOwnGroup ? .ownSession : .ours)
    } catch {
      for end in [outputEnd, inputEnd] where end >= 0 { close(end) }
      throw error
    }
  }

  /// Runs a program on our own terminal, with variables added to ours, and returns its exit status.
  ///
  /// `onStart` gets the number of its process.
  package static func run(
    _ words: [String], variables: [String], onStart: (Int32) -> Void = { _ in }
  ) throws(SpawnFailure) -> Int32 {
    // env(1) adds them: so ours need not be copied.
    let all = variables.isEmpty ? words : ["/usr/bin/env"] + variables + words
    let process = try spawn(all[0], all)
    onStart(process)
    return waitForChild(process)
  }

  /// Its exit status; 128 and more: a signal ended it.
  @discardableResult
  package func wait() -> Int32 {
    if let status { return status }
    let result = waitForChild(process)
    status = result
    return result
  }

  /// Ends it, with all it started if it has a group of its own, and closes the pipes.
  package func end() {
    if status == nil { kill(hasOwnGroup ? -process : process, SIGKILL) }
    wait()
    for end in [output, input] where end >= 0 { close(end) }
  }

  /// Asks it to end, and ends it where it does not within three seconds.
  package func terminate() {
    if status == nil {
      kill(process, SIGTERM)
      _ = waitForEnd(seconds: 3)
    }
    end()
  }

  package func closeInput() {
    if input >= 0 { close(input) }
    input = -1
  }

  /// False: nothing came within so many seconds.
  package func waitForOutput(seconds: Int) -> Bool {
    let deadline = ContinuousClock.now + .seconds(Int32(clamping: seconds))
    return (try? Poll.wait(for: [Poll.Entry(output)], until: deadline)) == [true]
  }

  /// All that it prints until it closes its output; nil: that is not so by then, or it is more than `limit` bytes.
  package func readOutput(limit: Int, until deadline: ContinuousClock.Instant) -> [UInt8]? {
    var bytes: [UInt8] = []
    while bytes.count <= limit {
      guard (try? Poll.wait(for: output, until: deadline)) == true,
        let chunk = try? Files.readSome(output)
      else { return nil }
      if chunk.isEmpty { return bytes }
      bytes += chunk
    }
    return nil
  }

  /// False: it has not ended within so many seconds.
  package func waitForEnd(seconds: Int) -> Bool {
    ProcessHandle(process: process)?.waitForEnd(seconds: seconds) ?? false
  }

  private static func pipe(for program: String) throws(SpawnFailure) -> (Int32, Int32) {
    do throws(Errno) { return try PipeEnds.numbers() } catch {
      throw SpawnFailure(program: program, errno: error.rawValue)
    }
  }
}
