package import Control
package import KeychainSelection
package import Model
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

  package func attempt<Value>(_ body: () throws(StoreError) -> Value) throws -> Value {
    do throws(StoreError) { return try body() } catch { throw failure(error) }
  }

  /// A mount that hangs can be ended without a loss.
  package func failure(_ error: StoreError) -> Failure {
    guard case .unreachable(let reason) = error else { return Failure(path, error) }
    return Failure(
      path, "\(reason); `keyhole status` tells more, `kill \(process)` ends it, and nothing stored is lost")
  }
}
