import GRDB
import Glibc
import Model
import Platform
import SecretMemory
import Store
import StoreConformance
import Testing

@testable import Vault
@testable import VaultDatabase

/// All of a file; empty where there is none.
func contents(of path: String) -> [UInt8] {
  guard let file = unsafe fopen(path, "r") else { return [] }
  defer { unsafe fclose(file) }
  var bytes: [UInt8] = []
  var chunk = [UInt8](repeating: 0, count: 1 << 16)
  while case let count = unsafe fread(&chunk, 1, chunk.count, file), count > 0 {
    bytes += chunk.prefix(count)
  }
  return bytes
}

/// Writes a file of 0600.
func write(_ bytes: [UInt8], to path: String) throws {
  unsafe unlink(path)
  let number = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL, 0o600)
  try #require(number >= 0)
  defer { close(number) }
  let count = unsafe bytes.withUnsafeBytes { unsafe Glibc.write(number, $0.baseAddress, $0.count) }
  try #require(count == bytes.count)
}

/// The `StoreError` that `body` throws, or nil.
func failure(of body: () throws -> Void) -> StoreError? {
  do {
    try body()
    return nil
  } catch {
    return error as? StoreError ?? .unsupported(reason: "\(error)")
  }
}

extension StoreError {
  /// The case's name.
  var kind: String { String("\(self)".prefix { $0 != "(" }) }
}

extension VaultFixture {
  /// The files of the vault's folder, except SQLite's own beside the database.
  func snapshot() -> [String: [UInt8]] {
    var files: [String: [UInt8]] = [:]
    for name in names(in: directory) where !name.hasSuffix("-shm") && name != "vault.reserve" {
      files[name] = contents(of: directory + "/" + name)
    }
    return files
  }

  /// Puts a snapshot back; the state folder stays as it is.
  func restore(_ files: [String: [UInt8]]) throws {
    removeAll(directory)
    try #require(unsafe mkdir(directory, 0o700) == 0)
    for (name, bytes) in files { try write(bytes, to: directory + "/" + name) }
  }

  /// Writes over the open database, as `cp` does: the same file, other bytes.
  func overwrite(with bytes: some Collection<UInt8>) throws {
    let (file, bytes) = (unsafe Glibc.open(database, O_WRONLY | O_TRUNC), Array(bytes))
    defer { close(file) }
    try #require(unsafe Glibc.write(file, bytes, bytes.count) == bytes.count)
  }

  /// Makes a vault with a few items, closed again: their ids by service.
  @discardableResult func makeVault(_ services: [ExactString] = ["a", "b", "c"]) throws -> [ItemID] {
    let engine = try open()
    return try services.map { try engine.add(KeychainSamples.generic($0), "secret of \($0)").id }
  }

  /// Edits the closed vault with plain SQL.
  func edit(_ statements: String...) throws {
    let queue = try DatabaseQueue(path: database)
    try queue.writeWithoutTransaction { database in
      for statement in statements { try database.execute(sql: statement) }
    }
    try queue.close()
  }

  /// One number by plain SQL.
  func number(_ query: String) throws -> Int? {
    let queue = try DatabaseQueue(path: database)
    return try queue.read { try Int.fetchOne($0, sql: query) }
  }

  /// An ID as SQL's blob literal.
  func literal(_ id: ItemID) -> String {
    "x'" + id.rawValue.filter { $0 != "-" } + "'"
  }
}

extension VaultFixture {
  /// Whether this process has SQLite's lock of readers on the database. An open file description's query sees it, because
  /// such locks are not the process's.
  var isLocked: Bool {
    guard let file = try? KeptFile.open(database) else { return false }
    var lock = flock()
    (lock.l_type, lock.l_start, lock.l_len) = (Int16(F_WRLCK), 0x4000_0002, 510)
    let queryOfDescription: Int32 = 36
    // SAFETY: a variadic call with its one argument, which lives until it returns.
    let result = unsafe fcntl(file.descriptor.number, queryOfDescription, &lock)
    return result == 0 && lock.l_type != Int16(F_UNLCK)
  }
}
