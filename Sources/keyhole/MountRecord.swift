import Glibc

/// A note that a mount's process leaves in the runtime folder for as long as it serves.
///
/// So commands find the mounts of their own stores without touching any other: one that hangs would hang
/// whoever looks at it.
struct MountRecord {
  let process: Int32
  let path: String
  /// Which keychain it shows, for commands that work on the same one.
  let keychain: KeychainOpening
  private let file: String

  private static let ending = ".mount"

  /// Notes the mount of this process.
  static func add(_ path: String, _ keychain: KeychainOpening, _ places: Places) -> MountRecord {
    makeFolders(places.runtime)
    // Those of processes that were killed while they served the same folder.
    for record in all(places) where record.path == path && !record.isAlive { record.remove() }
    let file = "\(places.runtime)/\(getpid())\(ending)"
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
  func remove() {
    unsafe unlink(file)
    unsafe unlink(String(file.dropLast(Self.ending.count)) + ControlSocket.ending)
  }

  /// The mounts of the stores of `places` that are still in the mount table, the newest last.
  static func all(_ places: Places) -> [MountRecord] {
    let table = MountTable()
    return names(in: places.runtime).compactMap { name in
      guard name.hasSuffix(ending), let process = Int32(name.dropLast(ending.count)) else { return nil }
      let file = "\(places.runtime)/\(name)"
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
  var isAlive: Bool {
    // The state stands behind the name in parentheses; a zombie serves nobody.
    let stat = readFile("/proc/\(process)/stat")
    guard let end = stat.lastIndex(of: ")") else { return false }
    return !["Z", "X"].contains(stat[end...].dropFirst(2).first)
  }
}

/// What stands in a folder; nothing where it can't be read.
func names(in path: String) -> [String] {
  guard let folder = unsafe opendir(path) else { return [] }
  defer { unsafe closedir(folder) }
  var names: [String] = []
  while let entry = unsafe readdir(folder) {
    let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
      unsafe String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
    if name != ".", name != ".." { names.append(name) }
  }
  return names
}

/// mkdir -p, private to the user.
func makeFolders(_ path: String) {
  var made = ""
  for part in path.split(separator: "/") {
    made += "/" + part
    unsafe mkdir(made, 0o700)
  }
}
