import CLinux
import Control
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

  /// Whether an item's secret is given. Returns when it is answered, or the other side is gone.
  func answer(for item: ItemID) {
    answer { () throws(StoreError) in try permission(for: item) }
  }

  /// Has a new password chosen for an item, which may not be there yet.
  func answer(forNewPasswordOf item: ItemID, at path: String) {
    answer { () throws(StoreError) in try permission(forNewPasswordOf: item, at: path) }
  }

  /// Whether the rules of a folder, or of the keychain, may be changed.
  func answer(forRulesAt path: String) {
    answer { () throws(StoreError) in try permission(forRulesAt: path) }
  }

  private func answer(_ permission: () throws(StoreError) -> Permission) {
    do throws(StoreError) {
      switch try permission() {
      case .given(let permit): send(.approved(permit.password))
      case .asked(let request):
        request.start { [self] outcome in
          switch outcome {
          case .success(let permit): send(.approved(permit.password))
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
    return try keychain.permission(for: item, path: path, by: asker)
  }

  private func permission(forNewPasswordOf id: ItemID, at path: String) throws(StoreError) -> Permission {
    guard let keychain = tree.keychain else { throw .notFound }
    try keychain.refresh()
    guard let item = try keychain.read({ $0[id] }) else {
      return try keychain.permission(forNewPasswordAt: path, by: asker)
    }
    var changed = item
    changed.access.flags.append(.applicationPassword)
    // Of what is there, not the one who asks says what a person is shown.
    let path = try tree.path(of: id) ?? path
    return try keychain.permission(for: item, path: path, changingTo: changed, by: asker)
  }

  private func permission(forRulesAt path: String) throws(StoreError) -> Permission {
    guard let keychain = tree.keychain else { throw .notFound }
    try keychain.refresh()
    guard let scope = try tree.ruleScope(at: path.split(separator: "/").map(String.init)) else {
      throw .notFound
    }
    return try keychain.permission(toChangeRulesOf: scope, path: path, by: asker)
  }

  private func asker() -> Asker? { Asker(thread: linux_peer_process(connection)) }

  /// The other side sends no more, so what comes is the end.
  private func waitForEnd() {
    var byte: UInt8 = 0
    while true {
      let count = unsafe recv(connection, &byte, 1, 0)
      guard count < 0, errno == EINTR || errno == EAGAIN else { return }
    }
  }

  private func send(_ reply: PermitReply) {
    unsafe reply.withBytes {
      // SAFETY: the buffer says how long it is. MSG_NOSIGNAL: who asked may be gone.
      _ = unsafe Glibc.send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
    }
  }
}
