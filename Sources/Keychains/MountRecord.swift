import Glibc
import Home

/// A note that a mount's process leaves in the runtime folder for as long as it serves.
///
/// So commands find the mounts of their own stores without touching any other: one that hangs would hang
/// whoever looks at it.
package struct MountRecord: Sendable {
  package let process: Int32
  package let path: String
  /// Which keychain it shows, for commands that work on the same one.
  package let keychain: KeychainOpening
  private let file: String

  private static let ending = ".mount"
  /// Of the socket that stands beside it, by which the process takes orders.
  package static let socketEnding = ".control"

  /// Notes the mount of this process.
  package static func add(
    _ path: String, _ keychain: KeychainOpening, in folder: String
  ) -> MountRecord {
    UserFolders.make(folder)
    // Those of processes that were killed while they served the same folder.
    for record in all(in: folder) where record.path == path && !record.isAlive { record.remove() }
    let file = "\(folder)/\(getpid())\(ending)"
    // SAFETY: a variadic call with its one argument.
    let descriptor = unsafe open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
    if descriptor >= 0 {
      // Of all bytes only this one is in no path.
      let bytes = Array("\(path)\0\(keychain.word)".utf8)
      // SAFETY: the buffer says how long it is.
      _ = unsafe bytes.withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
      close(descriptor)
    }
    return MountRecord(process: getpid(), path: path, keychain: keychain, file: file)
  }

  /// With the socket, which a process that was killed leaves behind.
  package func remove() {
    unsafe unlink(file)
    unsafe unlink(String(file.dropLast(Self.ending.count)) + Self.socketEnding)
  }

  /// The mounts noted in a runtime folder that are still in the mount table, the newest last.
  package static func all(in folder: String) -> [MountRecord] {
    let table = MountTable()
    return names(in: folder).compactMap { name in
      guard name.hasSuffix(ending), let process = Int32(name.dropLast(ending.count)) else { return nil }
      let file = "\(folder)/\(name)"
      let parts = readFile(file).split(separator: "\0", maxSplits: 1).map(String.init)
      let record = MountRecord(
        process: process, path: parts.first ?? "",
        keychain: parts.count > 1 ? KeychainOpening(word: parts[1]) : KeychainOpening(), file: file)
      guard table.entry(at: record.path)?.type == "fuse.keyhole" else {
        // It was killed, and somebody unmounted it since.
        if !record.isAlive { record.remove() }
        return nil
      }
      return record
    }.sorted { $0.process < $1.process }
  }

  /// Whether its process is still there; else every call says `Transport endpoint is not connected`.
  package var isAlive: Bool {
    // The state stands behind the name in parentheses; a zombie serves nobody.
    let stat = readFile("/proc/\(process)/stat")
    guard let end = stat.lastIndex(of: ")") else { return false }
    return !["Z", "X"].contains(stat[end...].dropFirst(2).first)
  }
}
