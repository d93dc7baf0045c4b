import GRDB
import Model
import Store
import VaultDatabase

/// The second connection of a session, for reading all items beside the calls of the first. Used by any thread.
///
/// It stays open between two readings. Where a connection is closed, GRDB's queue gives the destructors of its values to a
/// global queue of libdispatch, and that starts a timer which then wakes the process once a second until it ends.
final class ReaderConnection: Sendable {
  private let directory: VaultDirectory
  private let idle = Locked(Idle())

  private final class Idle {
    var connection: Connection?
  }

  init(_ directory: VaultDirectory) { self.directory = directory }

  /// Not to bring the log into the database, which is for the connection that others use.
  deinit { idle.use { try? $0.connection?.close() } }

  /// The connection, or another one while it is in use. Each one is given back.
  ///
  /// - Throws: `unreachable` where there is no vault at the path; `damaged`.
  func take() throws(StoreError) -> Connection {
    let kept = idle.use { idle in
      defer { idle.connection = nil }
      return idle.connection
    }
    guard let kept else { return try VaultFile(replacing: directory).connection }
    guard kept.displacement != nil else { return kept }
    try? kept.close()
    return try VaultFile(replacing: directory).connection
  }

  /// Ends the transaction of a connection that was taken, and keeps the connection unless there is one.
  func giveBack(_ connection: Connection) {
    if !isReset(connection) || !keep(connection) { try? connection.close() }
  }

  private func isReset(_ connection: Connection) -> Bool {
    let isEnded: Void? = try? connection.run { database in
      if database.isInsideTransaction { try database.rollback() }
    }
    return isEnded != nil && (try? connection.dropCache()) != nil
  }

  private func keep(_ connection: Connection) -> Bool {
    idle.use { idle in
      guard idle.connection == nil else { return false }
      idle.connection = connection
      return true
    }
  }
}
