package import Control
import KeychainSelection
package import Model
import Platform
package import SecretMemory

extension MountRegistration {
  /// Sends a request to the mount's process, and waits for its reply.
  ///
  /// - Throws: `Failure` that names the mount, with what to do.
  package func ask(_ request: ControlMessage, _ places: StoragePaths) throws {
    try attempt { () throws(StoreError) in
      _ = try ControlClient.ask(process, in: places.runtime, request)
    }
  }

  /// The same with a secret.
  package func ask(_ request: ControlMessage, secret: borrowing SecretBytes, _ places: StoragePaths)
    throws(StoreError)
  {
    _ = try ControlClient.ask(process, in: places.runtime, request, secret: secret)
  }

  /// The report of the process; nil: it does not answer within five seconds, or is of a version that gives none.
  var report: String? {
    let reply = Background.result(within: .seconds(5)) { [process, folder] () -> ControlMessage? in
      try? ControlClient.ask(process, in: folder, .fetchStatus)
    }
    guard case .status(let text)?? = reply else { return nil }
    return text
  }

  /// `subject`: what the message is about, where the process answers; nil: the mount.
  package func attempt<Value>(
    about subject: String? = nil, _ body: () throws(StoreError) -> Value
  ) throws -> Value {
    do throws(StoreError) { return try body() } catch { throw failure(error, about: subject) }
  }

  package func failure(_ error: StoreError, about subject: String? = nil) -> Failure {
    guard case .unreachable(let reason) = error else { return Failure(subject ?? path, error) }
    guard !isStopped else { return Failure(path, "\(reason); \(silence)") }
    // The process answers, and what it can't reach is elsewhere.
    guard ControlClient.isSilence(error) else { return Failure(subject ?? path, error) }
    return Failure(
      path, "\(reason); `keyhole status` tells more, `kill \(process)` ends it, and nothing stored is lost")
  }

  /// Whether its process is stopped by SIGSTOP: the third field of /proc/PID/stat. One that a debugger traces goes on.
  package var isStopped: Bool { ProcessFiles(process).status?.state == "T" }

  /// Why the mount does not answer, and what to do. SIGTERM does not end a process that is stopped.
  package var silence: String {
    isStopped
      ? "its process is stopped; `kill -CONT \(process)` has it go on"
      : "it does not answer; `kill \(process)` ends it, and nothing stored is lost"
  }
}
