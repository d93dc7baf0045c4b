package import GRDB
package import Model
import Platform
import SecretMemory
import Store
import VaultRecords

/// The one connection to the database, and the one place that turns SQLite's errors into `StoreError`.
package final class Connection {
  private let queue: DatabaseQueue
  private let path: String
  /// nil: not looked for yet, or there is none.
  private var walIndex: WALIndex?
  private let checkpoints: LogCheckpoints
  /// The file that is open; nil: it had left its path before it was.
  private let file: FileStamp?
  /// The open log; nil: there was none yet.
  private var log: FileStamp?
  /// The file as this process last wrote or checked it.
  private let known: KnownStamp
  /// The database is a copy in memory, because its disk took no writes.
  private let isCopy: Bool

  /// How long a process waits for another's transaction; below the 10 s that a caller may wait.
  static let patienceMilliseconds: Int32 = 8000

  package init(_ path: String) throws(StoreError) {
    self.path = path
    var configuration = Configuration()
    configuration.busyMode = .timeout(Double(Self.patienceMilliseconds) / 1000)
    // GRDB would end the process where a rollback fails on a broken disk.
    configuration.allowsUnsafeTransactions = true
    configuration.prepareDatabase { database in
      SharedMemoryAllocation.install(database, path)
      for pragma in Self.pragmas { try database.execute(sql: pragma) }
    }
    do {
      queue = try DatabaseQueue(path: path, configuration: configuration)
    } catch {
      throw StoreError(vault: error, errno: Errno.current.rawValue)
    }
    file = Self.openFile(queue, path)
    known = KnownStamp(path, file)
    checkpoints = LogCheckpoints(path, queue, known)
    isCopy = false
  }

  /// A copy in memory of a database at rest, on a disk that takes no writes: there SQLite can't make the log that it wants
  /// even for reading. It can't be written, and is displaced once the disk takes writes.
  ///
  /// - Throws: `damaged` where there is a log that is not empty, which this would leave out.
  package init(copying path: String) throws(StoreError) {
    self.path = path
    file = FileStamp(path)
    known = KnownStamp(path, file)
    guard (FileStamp(path + "-wal")?.size ?? 0) == 0 else { throw .damaged(what: path + "-wal") }
    var configuration = Configuration()
    configuration.allowsUnsafeTransactions = true
    do {
      let bytes = try Self.content(of: path)
      configuration.prepareDatabase { database in
        try database.deserialize(bytes)
        for pragma in Self.pragmas { try database.execute(sql: pragma) }
      }
      queue = try DatabaseQueue(configuration: configuration)
    } catch {
      throw StoreError(vault: error, errno: Errno.current.rawValue)
    }
    checkpoints = LogCheckpoints(path, queue, known)
    isCopy = true
  }

  private static func content(of path: String) throws(StoreError) -> [UInt8] {
    guard let file = try KeptFile.open(path) else { throw .notFound }
    let size = try StoreError.call("stat \(path)") { () throws(Errno) in
      Int(clamping: try file.descriptor.status.size)
    }
    var bytes = try StoreError.call("read \(path)") { () throws(Errno) in
      try file.descriptor.read(size, at: 0)
    }
    guard bytes.count == size, size > 20 else { throw .damaged(what: path) }
    // The versions of the format (https://sqlite.org/fileformat.html, 1.3): 1 keeps no log.
    (bytes[18], bytes[19]) = (1, 1)
    return bytes
  }

  deinit { finish() }

  /// Brings in what was committed, while it still can be.
  package func finish() { checkpoints.finish() }

  /// synchronous=FULL: a commit is on the disk when it returns. secure_delete: what is deleted is zeroed.
  /// mmap_size=0: a disk error is an error, not SIGBUS.
  private static let pragmas = [
    "PRAGMA trusted_schema = OFF", "PRAGMA cell_size_check = ON", "PRAGMA mmap_size = 0",
    "PRAGMA synchronous = FULL", "PRAGMA secure_delete = ON", "PRAGMA cache_size = -512",
    "PRAGMA temp_store = MEMORY", "PRAGMA wal_autocheckpoint = 256",
    "PRAGMA journal_size_limit = 1048576",
  ]

  /// Runs `body` as it is.
  package func run<Result>(_ body: (Database) throws -> Result) throws(StoreError) -> Result {
    do {
      return try queue.writeWithoutTransaction { database in
        guard database.isOpen else {
          throw StoreError.unreachable(reason: "\(path) is closed, and what took its place can't be opened")
        }
        do {
          return try body(database)
        } catch {
          let failure = Self.failure(error, database)
          // A file that is written over at this moment is read from the disk by the next statement.
          if case .damaged = failure { database.releaseMemory() }
          throw failure
        }
      }
    } catch {
      throw StoreError(vault: error, errno: 0)
    }
  }

  /// Runs `body` in a transaction that reads one state of the database.
  package func read<Result>(_ body: (Database) throws -> Result) throws(StoreError) -> Result {
    try transaction(.deferred, body).0
  }

  /// Runs `body` in a transaction that no other process writes beside.
  ///
  /// - Throws: also `unreachable` where the file has left its path, before the commit or meanwhile: what was committed
  ///   then is in a file that nothing opens again.
  package func write<Result>(_ body: (Database) throws -> Result) throws(StoreError) -> Result {
    try requireInPlace()
    return try writeInPlace(body)
  }

  /// As `write`; that the file is at its path was looked at just now.
  package func writeInPlace<Result>(_ body: (Database) throws -> Result) throws(StoreError) -> Result {
    let (result, hasChanged) = try transaction(.immediate, body)
    guard hasChanged else { return result }
    // SQLite itself may have brought the log into the file.
    known.note(try requireInPlace())
    announce()
    checkpoints.noteCommit()
    return result
  }

  /// Raises IN_ATTRIB for those who watch the folder. SQLite makes a commit visible in memory that processes share,
  /// after its last write to a file: a process that looked at that write has seen nothing yet.
  ///
  /// Of the log: the times of the database tell when something was last written into it.
  private func announce() {
    if (try? Files.touch(path + "-wal")) == nil { try? Files.touch(path) }
  }

  /// Another process has committed something, which nothing may have brought into the database yet.
  package func noteForeignCommit() { checkpoints.noteCommit() }

  /// VACUUM, where the disk has room for it.
  package func dropUnusedPages() {
    guard (try? run { try $0.execute(sql: "VACUUM") }) != nil, let stamp = try? requireInPlace() else {
      return
    }
    known.note(stamp)
    checkpoints.noteCommit()
  }

  /// After rows were deleted whose bytes must not stay in the file: they were overwritten, but pages that SQLite has divided or
  /// joined before may hold copies. Writes the database again without them, and empties the log.
  package func dropResidue() {
    dropUnusedPages()
    checkpoint()
  }

  /// Brings the log into the database.
  package func checkpoint() { checkpoints.run(waiting: 1000) }

  private func transaction<Result>(
    _ kind: Database.TransactionKind, _ body: (Database) throws -> Result
  ) throws(StoreError) -> (Result, hasChanged: Bool) {
    try run { database in
      let before = database.totalChangesCount
      try database.beginTransaction(kind)
      do {
        let result = try body(database)
        try end(kind, database)
        return (result, database.totalChangesCount != before)
      } catch {
        let failure = Self.failure(error, database)
        try? database.rollback()
        throw failure
      }
    }
  }

  /// A commit fails after any error of a damaged page, also one that `body` has dealt with; what was only read needs none.
  private func end(_ kind: Database.TransactionKind, _ database: Database) throws {
    do { try database.commit() } catch {
      guard kind == .deferred else { throw error }
      try database.rollback()
    }
  }

  /// The state of the database at this moment; nil: it is not known.
  ///
  /// Only after something was read, or there may be no shared memory yet.
  package func commitMark() -> WALSnapshot? {
    if walIndex == nil { walIndex = try? run { SQLiteFile(.database, of: $0)?.walIndex() } }
    return walIndex.flatMap { WALSnapshot($0) }
  }

  /// The same inside a transaction; nil also where `commitMark` was not called before.
  package func commitMarkInTransaction() -> WALSnapshot? { walIndex.flatMap { WALSnapshot($0) } }

  /// `close` was called.
  package private(set) var isClosed = false

  /// Closes the file now. Afterwards everything fails that needs it.
  package func close() throws(StoreError) {
    walIndex = nil
    isClosed = true
    do {
      try queue.close()
    } catch {
      throw StoreError(vault: error, errno: 0)
    }
  }

  /// Names the errno while the connection still knows it.
  private static func failure(_ error: any Error, _ database: Database) -> StoreError {
    let isInputOutput = (error as? DatabaseError)?.resultCode == .SQLITE_IOERR
    return StoreError(
      vault: error, errno: isInputOutput ? database.systemErrorOfFiles : database.systemError)
  }
}

// MARK: - The file at its path

extension Connection {
  /// The file that SQLite has open, if that is the one at the path.
  private static func openFile(_ queue: DatabaseQueue, _ path: String) -> FileStamp? {
    let stamp = FileStamp(path)
    return queue.writeWithoutTransaction { $0.hasMoved } ? nil : stamp
  }

  /// Whether the open file is still at its path.
  package enum Place {
    /// nil: there is none.
    case displaced(by: FileStamp?, reason: String)
    /// It was written to by something else than this process since it was last checked: by another process's checkpoint,
    /// or by a program that wrote over it in place (`cp`).
    case touched
    case asLeft
  }

  /// stat(2) of the file and of its log.
  package var place: Place {
    let (present, displacement) = look()
    if let displacement { return .displaced(by: present, reason: displacement) }
    return known.isOther(present) ? .touched : .asLeft
  }

  /// The file at the path, and why what is committed here would be lost; nil: nothing would.
  private func look() -> (FileStamp?, displacement: String?) {
    let present = FileStamp(path)
    // Another file may have taken the path while this one was opened.
    guard let file, let present else {
      return (
        present,
        "\(path) was removed or moved away while it was open; put it back, or export what is still shown"
      )
    }
    guard file.isSameFile(as: present) else { return (present, "\(path) was replaced while it was open") }
    guard !isCopy else {
      let isWritable = DiskProbe.refusal(of: VaultDirectory.folder(of: path)) == nil
      return (present, isWritable ? "the disk of \(path) takes writes again" : nil)
    }
    let presentLog = FileStamp(path + "-wal")
    if let log, presentLog.map({ !log.isSameFile(as: $0) }) ?? true {
      return (present, "\(path)-wal was removed or replaced while it was open")
    }
    log = log ?? presentLog
    return (present, nil)
  }

  /// Why what is committed here would be lost; nil: the open file and its log are what has their names.
  package var displacement: String? { look().displacement }

  /// - Throws: `unreachable`.
  @discardableResult private func requireInPlace() throws(StoreError) -> FileStamp? {
    let (present, displacement) = look()
    if let displacement { throw .unreachable(reason: displacement + "; nothing was stored") }
    return present
  }

  /// Whether the file was touched (`Place`), before something is stored in it. - Throws: `unreachable`.
  package func isTouchedInPlace() throws(StoreError) -> Bool { known.isOther(try requireInPlace()) }

  /// Returns whether the file was touched (`Place`) until now.
  package func noteChecked() -> Bool {
    let present = FileStamp(path)
    defer { known.note(present) }
    return known.isOther(present)
  }

  /// The file counts as touched.
  package func noteUnchecked() { known.note(nil) }

  /// The same as `dropCache` where the file was touched, or is not at its path.
  package func dropCacheIfTouched() throws(StoreError) {
    if known.isTouched { try dropCache() }
  }

  /// Has SQLite read again what it keeps of the file in memory.
  package func dropCache() throws(StoreError) {
    try run { $0.releaseMemory() }
  }
}

extension Connection {
  /// A number that changes when another process commits: `PRAGMA data_version`.
  package static func dataVersion(_ database: Database) throws -> UInt64 {
    let query = try Query(database, "PRAGMA data_version")
    return try query.step() ? query.integer(0) : 0
  }
}
