import GRDB
import Model
import Platform
import VaultRecords

extension StoreError {
  /// The error that callers of the vault get; messages of SQLite's and statements stay inside.
  package init(vault error: any Error, errno: Int32) {
    guard let error = error as? DatabaseError else {
      self.init(vault: error)
      return
    }
    self.init(sqlite: error.extendedResultCode, errno: errno)
  }

  private init(sqlite code: ResultCode, errno: Int32) {
    switch code.primaryResultCode {
    case .SQLITE_FULL: self = .noSpace
    case .SQLITE_BUSY, .SQLITE_LOCKED:
      self = .unreachable(reason: "another process keeps the vault's database locked")
    case .SQLITE_READONLY: self = .readOnly(reason: "the vault's file can't be written")
    case .SQLITE_NOMEM: self = .outOfMemory
    case .SQLITE_CONSTRAINT: self = .exists
    case .SQLITE_TOOBIG: self = .tooLarge(limit: SealedSecret.largestSize)
    case .SQLITE_IOERR, .SQLITE_CANTOPEN: self.init(inputOutput: code, errno: errno)
    default: self = .damaged(what: "the vault's database")
    }
  }

  private init(inputOutput code: ResultCode, errno: Int32) {
    // Reads past the end and the like have no errno.
    let error = errno == 0 ? Errno.EIO : Errno(rawValue: errno)
    self = code == .SQLITE_IOERR_SHMSIZE ? .noSpace : StoreError(error, "the vault's database")
  }
}
