import Model
import Platform
import Prompting
package import SecretMemory
import Tree

/// The process that empties the clipboard after a time. It has the secret, to compare, in locked memory; it is neither an
/// argument nor in the environment.
package enum ClipboardClearing {
  /// Starts it, in a session of its own, which the end of the terminal does not end.
  package static func start(
    _ secret: borrowing SecretBytes, in clipboard: Clipboard, after seconds: Int
  ) throws {
    let words = ["keyhole", "clear-clipboard", clipboard.tool.rawValue, String(seconds)]
    do {
      let pipe = try PipeEnds()
      _ = try spawn(
        "/proc/self/exe", words,
        streams: [.descriptor(pipe.reader.number, as: 0), .nothing(as: 1), .nothing(as: 2)], in: .ownSession)
      try Files.write(secret.span, to: pipe.writer.number)
    } catch {
      throw Failure(nil, "the process that clears the clipboard can't be started; clear it yourself")
    }
  }

  /// That process: reads the secret from standard input, waits, and clears.
  package static func run(_ clipboard: Clipboard, after seconds: Int) throws {
    CurrentProcess.leaveFolder()
    let secret = try SecretInput.read(descriptor: StandardStream.input.number, limit: FileTree.secretLimit)
    let end = ContinuousClock.now + .seconds(seconds)
    // The time in suspend counts: after it the secret must not stand there for the rest.
    while ContinuousClock.now < end { Pause.microseconds(500_000) }
    try clipboard.clear(ifHolding: secret)
  }
}
