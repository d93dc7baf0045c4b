package import Model
import Platform
package import SecretMemory
package import Store
package import VaultRecords

/// The folder of the vault and the folder of what belongs to this device; both of the user alone.
package struct VaultDirectory {
  package let path: String
  package let state: String
  package let machine: MachineIdentity

  package var database: String { path + "/vault.db" }

  /// Where a file of the vault lies.
  package static func folder(of file: String) -> String {
    Files.folder(of: file)
  }

  var log: String { path + "/vault.db-wal" }
  package var key: String { path + "/vault.key" }
  var deviceKey: String { state + "/device.key" }

  package func anchor(store: [UInt8]) -> String {
    let digits = store.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
    return state + "/" + digits.joined() + ".anchor"
  }

  /// Makes the folders where they are missing. - Throws: `accessDenied` where others can enter one.
  package init(_ path: String, state: String, machine: MachineIdentity = .current) throws(StoreError) {
    self.path = path
    self.machine = machine
    self.state = state
    try Self.prepare(path)
    try Self.prepare(state)
  }

  /// Runs `body` while no other process does the same; for making files.
  package func locked<Result: ~Copyable>(
    _ directory: String, _ body: () throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    let lock = try StoreError.call("open \(directory)") { () throws(Errno) in
      try Descriptor(directory, [.reading, .folder])
    }
    try wait(for: lock)
    return try body()
  }

  /// The key file's bytes. - Throws: `accessDenied` where it is missing.
  package func fetchKey() throws(StoreError) -> SecretBytes {
    if let key = try PrivateFile.readKey(key, count: KeyFileSource.length) { return key }
    throw .accessDenied(
      reason: "\(key) is missing: without it \(database) can't be opened; put back your copy of it")
  }

  /// A vault that opened by passphrase alone may have lost its key file.
  package func makeKeyIfMissing() throws(StoreError) {
    try locked(path) { () throws(StoreError) in
      try PrivateFile.finish(key)
      guard !Files.exists(key) else { return }
      try PrivateFile.createKey(key, count: KeyFileSource.length)
    }
  }

  /// Why the file can't be written; nil: it can.
  package var readOnlyReason: String? {
    do throws(Errno) {
      try Files.require(.write, database)
      return nil
    } catch {
      switch error {
      case .EROFS: return "the disk of \(database) is mounted read-only"
      case .EACCES: return "\(database) is not writable"
      default: return nil
      }
    }
  }

  /// A folder on the vault's disk in which a look for room is no news to those who watch the vault.
  package var probedFolder: String {
    guard let own = FileID(path), let other = FileID(state) else { return path }
    return own.device == other.device ? state : path
  }

  /// This device's key; nil: none was made yet.
  package func fetchDeviceKey() throws(StoreError) -> DeviceKey? {
    guard let bytes = try PrivateFile.readKey(deviceKey, count: 32) else { return nil }
    return DeviceKey(bytes)
  }

  /// This device's key, made now where there is none.
  func makeDeviceKey() throws(StoreError) -> DeviceKey {
    if let key = try fetchDeviceKey(), !PrivateFile.isUnfinished(deviceKey) { return key }
    try locked(state) { () throws(StoreError) in
      try PrivateFile.finish(deviceKey)
      guard !Files.exists(deviceKey) else { return }
      try PrivateFile.createKey(deviceKey, count: 32)
    }
    guard let key = try fetchDeviceKey() else { throw .damaged(what: deviceKey) }
    return key
  }

  /// fsync(2) of SQLite's log and its name. SQLite has no locks on this file that closing it would drop.
  package func synchronizeLog() throws(StoreError) {
    guard let file = try PrivateFile.open(log) else { return }
    try StoreError.call("fsync") { () throws(Errno) in try file.synchronize() }
    try PrivateFile.synchronize(directory: path)
  }

  /// statvfs(3) of the vault's disk.
  package func diskRoom() throws(StoreError) -> DiskRoom {
    try DiskRoom(StoreError.call("statvfs \(path)") { () throws(Errno) in try Volume(at: path) })
  }
}

extension VaultDirectory {
  private static func prepare(_ path: String) throws(StoreError) {
    var parent = path.hasPrefix("/") ? "" : "."
    // By scalars: a slash and a combining mark behind it are one Character.
    for part in path.unicodeScalars.split(separator: "/") {
      parent += "/" + String(part)
      do { try Files.makeFolder(parent) } catch {
        // EROFS, EACCES and others come for folders that exist, too.
        if error != .EEXIST, !Files.exists(parent) { throw StoreError(error, "mkdir \(parent)") }
      }
    }
    try check(path)
  }

  private static func check(_ path: String) throws(StoreError) {
    let found = try StoreError.call("stat \(path)") { () throws(Errno) in try Files.status(path) }
    guard let status = found else { throw .system(.ENOENT, operation: "stat \(path)") }
    guard status.isFolder else { throw .notDirectory }
    guard status.owner == User.effective else {
      throw .accessDenied(reason: "\(path) belongs to another user")
    }
    guard !status.isShared else {
      throw .accessDenied(reason: "others can enter \(path): `chmod 700 \(path)`")
    }
  }

  private func wait(for lock: borrowing Descriptor) throws(StoreError) {
    for _ in 0..<450 {
      do { if try lock.tryLock() { return } } catch { throw StoreError(error, "flock \(path)") }
      Pause.microseconds(20_000)
    }
    throw .unreachable(reason: "another process has been making \(path) for 9 seconds")
  }
}
