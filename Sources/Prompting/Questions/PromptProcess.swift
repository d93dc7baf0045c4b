import Dispatch
import Platform
import Synchronization

/// The process that asks a person: `keyhole authenticate`, which the process of a mount starts (`HelperAuthenticator`).
package enum PromptProcess {
  /// Reads a request from standard input, asks, and writes the answer to standard output.
  ///
  /// - Returns: whether it was started by Keyhole, with a request. Where not, nothing was asked.
  package static func run() -> Bool {
    guard isStartedByKeyhole, let request = AuthenticationRequest(reading: StandardStream.input.number)
    else { return false }
    endWithCaller()
    AuthenticationReply.send(Dialog(request).answer(), to: StandardStream.output.number)
    return true
  }

  /// Whether the parent is the same program. A mount's process can't be looked into, and is taken for one then.
  ///
  /// So no other program can have Keyhole's dialog show a text of its own by starting this. (One that closes itself to
  /// others, by prctl(2) PR_SET_DUMPABLE, still can; it could as well start pinentry.)
  private static var isStartedByKeyhole: Bool {
    guard let own = FileID("/proc/self/exe") else { return false }
    do throws(Errno) {
      return try Files.status("/proc/\(CurrentProcess.parent)/exe")?.id == own
    } catch {
      return error == .EACCES
    }
  }

  /// The end of standard input, or SIGTERM, means that the question is withdrawn: the dialog leaves its terminal as it
  /// was, and everything in this group ends.
  private static func endWithCaller() {
    Signals.ignore([.terminate])
    let terminated = DispatchSource.makeSignalSource(
      signal: Signals.Signal.terminate.rawValue, queue: DispatchQueue(label: "keyhole.end"))
    terminated.setEventHandler { end() }
    terminated.activate()
    termination.withLock { $0 = Termination(source: terminated) }
    DispatchQueue(label: "keyhole.input").async {
      var byte: [UInt8] = [0]
      var room = byte.mutableSpan
      while (try? Files.read(into: &room, from: StandardStream.input.number)) ?? 0 != 0 {}
      end()
    }
  }

  /// @unchecked: a source is only kept.
  private struct Termination: @unchecked Sendable {
    let source: any DispatchSourceSignal
  }

  private static let termination = Mutex<Termination?>(nil)

  private static func end() {
    Pinentry.endOpen()
    CurrentProcess.killGroup()
  }
}
