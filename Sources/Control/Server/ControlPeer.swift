import Model
import Platform
import Store

/// The process that made a connection, as it was identified before it could send a request.
///
/// A connection outlives what its process was: the process may start another program (execve(2)) that rules let in, or
/// hand the connection to one. So the process is identified before it gets the number that its requests have to repeat,
/// its requests count only when they come from it, and it is identified again when it is decided about and before each
/// reply with a secret.
package struct ControlPeer: Sendable {
  /// As it was identified when the connection was accepted.
  let caller: Caller

  /// Identifies the process at the other end of a connection.
  init(_ connection: StreamSocket) {
    caller = Caller(connection: connection.number)
  }

  /// The number of the process; 0: it is in another pid namespace.
  var process: Int32 { caller.process?.rawValue ?? 0 }

  /// - Throws: `accessDenied` where the process has ended or runs another program than when it was identified.
  func check() throws(StoreError) {
    guard caller.identity().isUnchanged else {
      throw .accessDenied(reason: "the process that asked has ended, or runs another program now")
    }
  }
}
