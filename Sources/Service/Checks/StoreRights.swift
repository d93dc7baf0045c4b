import Model
import Platform
import Store

/// The rights of the user to the folders of the stores, and to the files without which a vault can't be opened or written.
///
/// They are looked at before anything is opened: a file that can't be read would seem to be missing.
enum StoreRights {
  static func ofSettings(_ places: StoragePaths) -> [Problem] {
    problems(ofFolder: places.configuration, places)
  }

  static func ofVault(_ places: StoragePaths) -> [Problem] {
    let state = names(in: places.state).filter { $0 == "device.key" || $0.hasSuffix(".anchor") }
    let files: [(path: String, rights: Files.Rights)] =
      // SQLite gives its log and its shared memory the mode that the database had then.
      ["vault.db", "vault.db-wal", "vault.db-shm"].map { (places.vault + "/" + $0, [.read, .write]) }
      + [(places.vault + "/vault.key", .read)]
      + state.map { (places.state + "/" + $0, .read) }
    return problems(ofFolder: places.vault, places) + problems(ofFolder: places.state, places)
      + files.compactMap { problem(of: $0.path, $0.rights) }
  }

  private static func problems(ofFolder folder: String, _ places: StoragePaths) -> [Problem] {
    let present = nearest(folder)
    if present == folder { return problem(of: folder, [.read, .write, .execute]).map { [$0] } ?? [] }
    do throws(Errno) { try Files.require([.write, .execute], present) } catch {
      guard error == .EACCES else { return [] }
      return [missing(folder, error)]
    }
    return []
  }

  /// The path itself, or the lowest folder above it that is there.
  private static func nearest(_ path: String) -> String {
    var path = path
    while path != "/", path != ".", !Files.hasName(path) { path = Files.folder(of: path) }
    return path
  }

  private static func problem(of path: String, _ rights: Files.Rights) -> Problem? {
    // One that can't be looked at is in a folder that is a problem itself.
    guard let status = try? Files.status(path) else { return nil }
    do throws(Errno) { try Files.require(rights, path) } catch {
      // A disk without writes is a problem of its own.
      guard error == .EACCES else { return nil }
      return problem(of: path, rights, isFolder: status.isFolder, owner: status.owner, user: User.effective)
    }
    return nil
  }

  /// The report about a file or folder to which the user lacks rights.
  static func problem(
    of path: String, _ rights: Files.Rights, isFolder: Bool, owner: UInt32, user: UInt32
  ) -> Problem {
    let letters = isFolder ? "rwx" : rights.contains(.write) ? "rw" : "r"
    let uses = isFolder ? "use" : rights.contains(.write) ? "read and write" : "read"
    let quoted = path.quotedForShell
    return Problem(
      subject: path, reason: "its permissions do not let this user \(uses) it",
      remedy: owner == user
        ? "`chmod u+\(letters) \(quoted)`" : "`sudo chown \(isFolder ? "-R " : "")$(id -u) \(quoted)`")
  }

  /// The report about a folder that the user can't make.
  static func missing(_ folder: String, _ error: Errno) -> Problem {
    Problem(
      subject: folder, reason: "it is missing, and can't be made: \(error)",
      remedy: "`sudo install -d -m 700 -o $(id -u) \(folder.quotedForShell)` makes it")
  }
}
