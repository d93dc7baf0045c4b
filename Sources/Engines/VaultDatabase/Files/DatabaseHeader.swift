package import Model
import Platform
import VaultRecords

/// The first 100 bytes of the database file, looked at before SQLite is: a file that is no whole vault is
/// told from one that is without a byte of it being written.
package enum DatabaseHeader {
  /// "KHOL": the application_id of a vault's file.
  package static let applicationID: UInt32 = 0x4B48_4F4C
  /// - Throws: `unsupported` for what is no vault or a newer one, `damaged` for one that is cut off.
  package static func check(_ directory: VaultDirectory) throws(StoreError) {
    let path = directory.database
    guard let file = try KeptFile.open(path) else { throw .notFound }
    // The header before the size: another process may be adding pages.
    var header = try StoreError.call("read \(path)") { () throws(Errno) in
      try file.descriptor.read(100, at: 0)
    }
    let count = header.count
    header += [UInt8](repeating: 0, count: 100 - count)
    guard count > 0 else { throw .damaged(what: "\(path) (it is empty)") }
    try checkKind(header, count, path)
    _ = try checkVersion(word(header, 60), path)
    let status = try StoreError.call("stat \(path)") { () throws(Errno) in try file.descriptor.status }
    try checkSize(header, UInt64(clamping: status.size), directory)
  }

  /// The format of a `user_version`.
  static func checkVersion(_ version: UInt32, _ path: String) throws(StoreError) -> VaultFormat {
    guard version <= VaultFormat.newest.rawValue else {
      throw .unsupported(reason: "\(path) was made by a newer Keyhole: update Keyhole to open it")
    }
    guard let format = VaultFormat(rawValue: version) else { throw notAVault(path) }
    return format
  }

  static func notAVault(_ path: String) -> StoreError {
    .unsupported(reason: "\(path) is not a vault: move it away, or name another folder")
  }
}

extension DatabaseHeader {
  private static func checkKind(_ header: [UInt8], _ count: Int, _ path: String) throws(StoreError) {
    let magic = Array("SQLite format 3\0".utf8)
    guard header.prefix(min(count, 16)).elementsEqual(magic.prefix(count)) else { throw notAVault(path) }
    guard count == 100 else { throw truncated(path) }
    guard word(header, 68) == applicationID else { throw notAVault(path) }
    guard header[18] == 2, header[19] == 2 else { throw .damaged(what: "the header of \(path)") }
  }

  private static func checkSize(
    _ header: [UInt8], _ size: UInt64, _ directory: VaultDirectory
  ) throws(StoreError) {
    let stored = UInt64(header[16]) << 8 | UInt64(header[17])
    let pageSize = stored == 1 ? 65536 : stored
    guard pageSize >= 512, pageSize & (pageSize - 1) == 0 else {
      throw .damaged(what: "the header of \(directory.database)")
    }
    // With a log beside it the file may rightly be behind its header.
    guard size < UInt64(word(header, 28)) * pageSize, try !hasLog(directory) else { return }
    throw truncated(directory.database)
  }

  private static func hasLog(_ directory: VaultDirectory) throws(StoreError) -> Bool {
    guard let log = try PrivateFile.open(directory.log) else { return false }
    return try StoreError.call("stat \(directory.log)") { () throws(Errno) in try log.status }.size > 0
  }

  private static func truncated(_ path: String) -> StoreError {
    .damaged(what: "\(path) (it is cut off)")
  }

  private static func word(_ header: [UInt8], _ offset: Int) -> UInt32 {
    header[offset..<offset + 4].reduce(0) { $0 << 8 | UInt32($1) }
  }
}
