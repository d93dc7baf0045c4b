package import SecretMemory
import Synchronization

/// A user of the cluster with a password, and the token that stands for both.
///
/// The password lies in protected memory, but for each login it is copied into other memory: of this process, of libcurl and of its TLS.
package final class EtcdLogin: Sendable {
  let user: String
  private let password: SecretBytes
  private let token = Mutex<Token?>(nil)

  /// The servers give it for the password.
  struct Token: Equatable {
    let text: String
  }

  package init(user: String, password: consuming SecretBytes) {
    self.user = user
    self.password = password
  }

  var current: Token? { token.withLock { $0 } }

  func set(_ new: Token) {
    token.withLock { $0 = new }
  }

  /// Forgets a token that was refused, unless there is another one by now.
  func forget(_ refused: Token?) {
    token.withLock { if $0 == refused { $0 = nil } }
  }

  /// An `AuthenticateRequest`.
  var request: [UInt8] {
    var writer = WireWriter()
    writer.bytes(1, Array(user.utf8))
    writer.bytes(2, password.unprotected)
    return writer.bytes
  }
}
