import CredentialProtocols
import Formats
import KeychainSelection
import Model
import Platform
import Prompting
import SecretMemory
import Synchronization
import Tree

/// `keyhole credential systemd`: serves credentials to service managers, which connect for `LoadCredential=ID:SOCKET`.
///
/// The unit's name is the other end's own word. It is believed of root's manager; of a process of this user it is taken as
/// well, because such a process can have `keyhole get` read the same items. Other users get nothing.
package final class SystemdHelper: Sendable {
  /// The name of the socket in the runtime folder.
  private static let socketName = "credentials"
  /// systemd refuses a credential that is larger, and the unit with it.
  private static let mostBytes = 1 << 20
  /// How long a manager may take to read.
  private static let patience = Duration.seconds(30)

  /// A helper that the service manager has started ends after so long without a unit: the next one starts it again.
  private static let idle = Duration.seconds(60)

  private let listener: StreamListener
  private let serving = Mutex(0)
  /// Where it listens; nil: on a socket that the service manager has made.
  package let path: String?

  /// Takes the socket that the service manager has passed, else makes one in the runtime folder.
  ///
  /// - Throws: `Failure` where it can't be made.
  package init() throws {
    if let passed = StreamListener(passedByManager: ()) {
      listener = passed
      path = nil
      return
    }
    guard let folder = UserFolders.current()?.runtime else {
      throw Failure(nil, "there is no home folder; set HOME")
    }
    if let problem = RuntimeFolder.make(folder) { throw Failure(folder, problem) }
    let path = "\(folder)/\(Self.socketName)"
    do throws(Errno) { listener = try StreamListener(at: path) } catch {
      throw Failure(path, "no socket can be made there: \(error)")
    }
    self.path = path
  }

  /// Serves until the process is ended; on a socket of the service manager's, which keeps it, until no unit has asked for a
  /// minute, or for as long as `idle` says.
  ///
  /// - Throws: `Failure` where no connection can be accepted.
  package func run(idle: Duration? = nil) throws {
    while true {
      do throws(Errno) {
        let end = path == nil ? ContinuousClock.now + (idle ?? Self.idle) : nil
        guard try Poll.wait(for: listener.number, until: end) else {
          if end != nil, serving.withLock({ $0 == 0 }) { return }
          continue
        }
        let connection = try listener.accept()
        serving.withLock { $0 += 1 }
        Background.run {
          Self.serve(connection)
          self.serving.withLock { $0 -= 1 }
        }
      } catch .EAGAIN {
        continue
      } catch .ECONNABORTED {
        continue
      } catch {
        throw Failure(path, "no connection can be accepted: \(error)")
      }
    }
  }

  private static func serve(_ connection: StreamSocket) {
    let deadline = ContinuousClock.now + patience
    do {
      let secret = try secret(for: connection)
      try? connection.send(secret.span, until: deadline)
    } catch {
      let failure = error as? Failure
      let subject = failure?.subject.map { "\($0): " } ?? ""
      StandardError.write("keyhole: \(subject)\(failure?.reason ?? "there is not enough locked memory")\n")
      refuse(connection, deadline)
    }
    connection.shutDown()
  }

  /// The end of the bytes alone would be an empty credential, and the unit would start with it. More than it may have makes
  /// systemd refuse the unit.
  private static func refuse(_ connection: StreamSocket, _ deadline: ContinuousClock.Instant) {
    let zeros = [UInt8](repeating: 0, count: 64 * 1024)
    for _ in 0...mostBytes / zeros.count {
      do throws(Errno) { try connection.send(zeros.span, until: deadline) } catch { return }
    }
  }

  private static func secret(for connection: StreamSocket) throws -> SecretBytes {
    let user = connection.peer.user
    guard user == 0 || user == User.real else {
      throw Failure(
        "systemd", "user \(user.map(String.init) ?? "unknown") asked for a credential and got none", .refused)
    }
    guard let address = connection.abstractAddressOfPeer, let credential = SystemdCredential(address: address)
    else {
      throw Failure("systemd", "a process connected that is no service manager; it got nothing", .refused)
    }
    let path = FileTree.path(of: credential.identity)
    guard let secret = try CredentialItems().secret(credential.identity) else {
      throw Failure(
        path,
        "\(credential.unit.string) asked for \(credential.id.string), and there is no such item; "
          + "`keyhole set \(path.quotedForShell)` stores it", .notFound)
    }
    guard secret.count <= mostBytes else { throw Failure(path, "it is larger than systemd takes (1 MiB)") }
    return secret
  }
}
