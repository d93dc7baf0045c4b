import Model
import Platform
import Synchronization

/// The process in the background: how it is started, and how it tells that it is ready.
///
/// It is executed, not only forked: after a fork a process with threads may do next to nothing.
package enum Daemon {
  /// Starts this program with `arguments` in the background and returns when it is ready.
  ///
  /// `secret`: a descriptor that it gets as number 4; nil: none.
  /// - Throws: `Failure` with what it says.
  package static func start(_ arguments: [String], passing secret: Int32? = nil) throws {
    let pipe: PipeEnds
    do throws(Errno) { pipe = try PipeEnds() } catch { throw Failure(nil, "\(error)") }
    // The options go before the `--` that the mount point stands behind.
    let all = ["keyhole", arguments[0], "--ready-descriptor", "3"] + arguments.dropFirst()
    // In a session of its own: a closed terminal must not end it.
    do throws(SpawnFailure) {
      _ = try spawn(
        "/proc/self/exe", all,
        streams: [.descriptor(pipe.writer.number, as: 3)] + (secret.map { [.descriptor($0, as: 4)] } ?? []),
        in: .ownSession)
    } catch {
      throw Failure(nil, error.reason)
    }
    try wait(for: pipe.readerOnly())
  }

  /// Runs `body` and lets who waits know how it went.
  package static func reporting(
    to descriptor: Int32?, _ body: (_ ready: @escaping @Sendable () -> Void) throws -> Void
  ) throws {
    guard let descriptor else { return try body({}) }
    let report = StartReport(Descriptor(owning: descriptor))
    // Started through /proc/self/exe, it would be called `exe`.
    CurrentProcess.setName("keyhole")
    do {
      try body {
        report.send("ready")
        // Nothing of the process that started it is kept: neither its folder nor its terminal.
        CurrentProcess.leaveFolder()
        CurrentProcess.leaveStandardStreams()
      }
    } catch let failure as Failure {
      report.send(failure.subject.map { "\($0)\0\(failure.reason)" } ?? failure.reason)
      CurrentProcess.exit(1)
    }
  }

  private static func wait(for reader: consuming Descriptor) throws {
    let answer = String(decoding: (try? reader.readToEnd(limit: .max - 1)) ?? [], as: UTF8.self)
    guard answer != "ready" else { return }
    guard !answer.isEmpty else { throw Failure(nil, "the process in the background ended at once") }
    let parts = answer.split(separator: "\0", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    throw parts.count == 2 ? Failure(parts[0], parts[1]) : Failure(nil, answer)
  }
}

/// The pipe to the process that waits for this one. It takes one report: the number of its descriptor is another file's
/// afterwards.
final class StartReport: Sendable {
  private let pipe: Mutex<Descriptor?>

  init(_ pipe: consuming Descriptor) {
    self.pipe = Mutex(consume pipe)
  }

  /// Writes a text and closes the pipe. Nothing happens the second time.
  func send(_ text: String) {
    guard let pipe = pipe.withLock({ $0.take() }) else { return }
    try? pipe.write(Array(text.utf8))
  }
}
