import CLinux
import Doorbell
import Glibc
import Model
import Store
import Tree

/// Decides for a process that opens the keychain by itself, as for one that opens a file of the mount.
final class PermitConnection: Sendable {
  private let connection: Int32
  private let tree: Tree

  /// Takes over the connection.
  init(_ connection: Int32, _ tree: Tree) {
    (self.connection, self.tree) = (connection, tree)
  }

  deinit {
    close(connection)
  }

  /// Returns when it is answered, or the other side is gone.
  func answer(for item: ItemID) {
    do throws(StoreError) {
      switch try permission(for: item) {
      case .given: send(.approved)
      case .asked(let request):
        request.start { [self] outcome in
          switch outcome {
          case .success: send(.approved)
          case .failure(let error): send(PermitReply(error))
          }
          shutdown(connection, Int32(SHUT_RDWR))
        }
        waitForEnd()
        request.withdraw()
      }
    } catch {
      send(PermitReply(error))
    }
  }

  private func permission(for item: ItemID) throws(StoreError) -> Permission {
    guard let keychain = tree.keychain else { throw .notFound }
    // It may have been made a moment ago, by who asks.
    try keychain.refresh()
    guard let path = try tree.path(of: item) else { throw .notFound }
    let process = linux_peer_process(connection)
    return try keychain.permission(for: item, path: path) { Asker(thread: process) }
  }

  /// The other side sends no more, so what comes is the end.
  private func waitForEnd() {
    var byte: UInt8 = 0
    while true {
      let count = unsafe recv(connection, &byte, 1, 0)
      guard count < 0, errno == EINTR || errno == EAGAIN else { return }
    }
  }

  private func send(_ reply: PermitReply) {
    // SAFETY: the buffer says how long it is. MSG_NOSIGNAL: who asked may be gone.
    _ = unsafe Array(reply.text.utf8).withUnsafeBytes {
      unsafe Glibc.send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
    }
  }
}
