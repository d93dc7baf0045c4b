import GRDB
import GRDBSQLite
import Glibc
import Model
import SecretMemory

/// The one connection to the database, and the one place that turns SQLite's errors into `StoreError`.
final class Connection {
  private let queue: DatabaseQueue
  private let path: String
  /// nil: not looked for yet, or there is none.
  private var walIndex: WALIndex?

  /// How long a process waits for another's transaction, in seconds; below the 10 s that a caller may wait.
  private static let patience = 8.0

  init(_ path: String) throws(StoreError) {
    self.path = path
    var configuration = Configuration()
    configuration.busyMode = .timeout(Self.patience)
    // GRDB would end the process where a rollback fails on a broken disk.
    configuration.allowsUnsafeTransactions = true
    configuration.prepareDatabase { database in
      for pragma in Self.pragmas { try database.execute(sql: pragma) }
    }
    do {
      queue = try DatabaseQueue(path: path, configuration: configuration)
    } catch {
      throw StoreError(vault: error, errno: errno)
    }
  }

  /// synchronous=FULL: a commit is on the disk when it returns. secure_delete: what is deleted is zeroed.
  /// mmap_size=0: a disk error is an error, not SIGBUS.
  private static let pragmas = [
    "PRAGMA trusted_schema = OFF", "PRAGMA cell_size_check = ON", "PRAGMA mmap_size = 0",
    "PRAGMA synchronous = FULL", "PRAGMA secure_delete = ON", "PRAGMA cache_size = -512",
    "PRAGMA temp_store = MEMORY", "PRAGMA wal_autocheckpoint = 256",
    "PRAGMA journal_size_limit = 1048576",
  ]

  /// Runs `body` as it is.
  func run<Result>(_ body: (Database) throws -> Result) throws(StoreError) -> Result {
    do {
      return try queue.writeWithoutTransaction { database in
        do {
          return try body(database)
        } catch {
          throw Self.failure(error, database)
        }
      }
    } catch {
      throw StoreError(vault: error, errno: 0)
    }
  }

  /// Runs `body` in a transaction that reads one state of the database.
  func read<Result>(_ body: (Database) throws -> Result) throws(StoreError) -> Result {
    try transaction(.deferred, body)
  }

  /// Runs `body` in a transaction that no other process writes beside.
  func write<Result>(_ body: (Database) throws -> Result) throws(StoreError) -> Result {
    let before = try run { $0.totalChangesCount }
    let result = try transaction(.immediate, body)
    if try run({ $0.totalChangesCount }) != before { announce() }
    return result
  }

  /// Raises IN_ATTRIB for those who watch the file. SQLite makes a commit visible in memory that processes share,
  /// after its last write to a file: who looked at that write has seen nothing yet.
  private func announce() {
    // SAFETY: the string is alive during the call; no times mean now.
    _ = unsafe utimensat(AT_FDCWD, path, nil, 0)
  }

  private func transaction<Result>(
    _ kind: Database.TransactionKind, _ body: (Database) throws -> Result
  ) throws(StoreError) -> Result {
    try run { database in
      try database.beginTransaction(kind)
      do {
        let result = try body(database)
        try database.commit()
        return result
      } catch {
        let failure = Self.failure(error, database)
        try? database.rollback()
        throw failure
      }
    }
  }

  /// The state of the database at this moment; nil: it can't be told.
  ///
  /// Only after something was read, or there may be no shared memory yet.
  func commitMark() -> CommitMark? {
    if walIndex == nil { walIndex = try? run { WALIndex($0) } }
    return walIndex?.mark
  }

  /// Closes the file now; nothing may be called afterwards.
  func close() throws(StoreError) {
    walIndex = nil
    do {
      try queue.close()
    } catch {
      throw StoreError(vault: error, errno: 0)
    }
  }

  /// Names the errno while the connection still knows it.
  private static func failure(_ error: any Error, _ database: Database) -> StoreError {
    StoreError(vault: error, errno: unsafe sqlite3_system_errno(database.sqliteConnection))
  }
}

extension Connection {
  /// A number that changes when another process commits: `PRAGMA data_version`.
  static func dataVersion(_ database: Database) throws -> UInt64 {
    let query = try Query(database, "PRAGMA data_version")
    return try query.step() ? query.integer(0) : 0
  }
}

extension StoreError {
  /// What any error of the vault's is outside of it; messages of SQLite's and statements stay inside.
  init(vault error: any Error, errno: Int32) {
    switch error {
    case let error as StoreError: self = error
    case is SecretMemoryError: self = .outOfMemory
    case let error as DatabaseError: self.init(sqlite: error.extendedResultCode, errno: errno)
    default: self = .damaged(what: "the vault")
    }
  }

  private init(sqlite code: ResultCode, errno: Int32) {
    switch code.primaryResultCode {
    case .SQLITE_FULL: self = .noSpace
    case .SQLITE_BUSY, .SQLITE_LOCKED:
      self = .unreachable(reason: "another process keeps the vault's database locked")
    case .SQLITE_READONLY: self = .readOnly(reason: "the vault's file can't be written")
    case .SQLITE_NOMEM: self = .outOfMemory
    case .SQLITE_CONSTRAINT: self = .exists
    case .SQLITE_TOOBIG: self = .tooLarge(limit: VaultEngine.largestSecret)
    case .SQLITE_IOERR, .SQLITE_CANTOPEN: self.init(inputOutput: code, errno: errno)
    default: self = .damaged(what: "the vault's database")
    }
  }

  private init(inputOutput code: ResultCode, errno: Int32) {
    // Reads past the end and the like have no errno.
    let error = errno == 0 ? EIO : errno
    self = code == .SQLITE_IOERR_SHMSIZE ? .noSpace : StoreError(errno: error, "the vault's database")
  }
}
