import Model
import Platform
import Store

/// The rights of the user to the folders of the stores, and to the files without which a vault can't be opened or written.
///
/// They are looked at before anything is opened: a file that can't be read would seem to be missing.
enum StoreRights {
  static func ofSettings(_ places: StoragePaths) -> [Problem] {
    problems(ofFolder: places.configuration, isOwn: false)
  }

  static func ofVault(_ places: StoragePaths) -> [Problem] {
    let state = names(in: places.state).filter { $0 == "device.key" || $0.hasSuffix(".anchor") }
    let files: [(path: String, rights: Files.Rights)] =
      // SQLite gives its log and its shared memory the mode that the database had then.
      ["vault.db", "vault.db-wal", "vault.db-shm"].map { (places.vault + "/" + $0, [.read, .write]) }
      + [(places.vault + "/vault.key", .read)]
      + state.map { (places.state + "/" + $0, .read) }
    return problems(ofFolder: places.vault, isOwn: true) + problems(ofFolder: places.state, isOwn: true)
      + files.compactMap { problem(of: $0.path, $0.rights) }
  }

  /// The file or folder that rights are missing to.
  enum Kind {
    case file
    /// A folder of Keyhole's, with all that is in it.
    case ownFolder
    /// The folder of the settings, where other programs have theirs too.
    case sharedFolder
    /// A folder above them.
    case parent
  }

  private static func problems(ofFolder folder: String, isOwn: Bool) -> [Problem] {
    let (present, isHidden) = nearest(folder)
    if present == folder {
      return problem(of: folder, [.read, .write, .execute], isOwn ? .ownFolder : .sharedFolder).map { [$0] }
        ?? []
    }
    // Without the right to look into it, the folder below it may be there.
    if isHidden { return problem(of: present, [.execute], .parent).map { [$0] } ?? [] }
    do throws(Errno) { try Files.require([.write, .execute], present) } catch {
      guard error == .EACCES else { return [] }
      let owner = (try? Files.status(present))?.owner ?? 0
      return [missing(folder, in: present, error, owner: owner, user: User.effective)]
    }
    return []
  }

  /// The path itself, or the lowest folder above it that can be seen. `isHidden`: that folder does not let itself be
  /// searched.
  private static func nearest(_ path: String) -> (path: String, isHidden: Bool) {
    var (path, isHidden) = (path, false)
    while path != "/", path != "." {
      do throws(Errno) {
        if try Files.status(path, followingLinks: false) != nil { break }
        isHidden = false
      } catch {
        isHidden = error == .EACCES
      }
      path = Files.folder(of: path)
    }
    return (path, isHidden)
  }

  private static func problem(
    of path: String, _ rights: Files.Rights, _ kind: Kind = .file
  ) -> Problem? {
    // One that can't be looked at is in a folder that is a problem itself.
    guard let status = try? Files.status(path) else { return nil }
    do throws(Errno) { try Files.require(rights, path) } catch {
      // A disk without writes is a problem of its own.
      guard error == .EACCES else { return nil }
      return problem(of: path, rights, kind, owner: status.owner, user: User.effective)
    }
    return nil
  }

  /// The report about a file or folder to which the user lacks rights.
  static func problem(
    of path: String, _ rights: Files.Rights, _ kind: Kind, owner: UInt32, user: UInt32
  ) -> Problem {
    let isFile = kind == .file
    let letters = !isFile ? "rwx" : rights.contains(.write) ? "rw" : "r"
    let uses = !isFile ? "use" : rights.contains(.write) ? "read and write" : "read"
    let quoted = path.quotedForShell
    let remedy =
      switch owner {
      case user: "`chmod u+\(letters) \(quoted)`"
      // As a copy has it that root has put back. The folders above are root's for a reason.
      case 0 where kind != .parent: "`sudo chown \(kind == .ownFolder ? "-R " : "")$(id -u) \(quoted)`"
      default: foreign(owner)
      }
    return Problem(
      subject: path, reason: "its permissions do not let this user \(uses) it", remedy: remedy)
  }

  /// The report about a folder that the user can't make in the lowest one that is there.
  static func missing(
    _ folder: String, in parent: String, _ error: Errno, owner: UInt32, user: UInt32
  ) -> Problem {
    let remedy =
      switch owner {
      case user: "`chmod u+rwx \(parent.quotedForShell)`"
      case 0: "`sudo install -d -m 700 -o $(id -u) \(folder.quotedForShell)` makes it"
      default: foreign(owner)
      }
    return Problem(
      subject: folder, reason: "it is missing, and can't be made: \(error)", remedy: remedy)
  }

  /// Its folders are not to be taken over.
  private static func foreign(_ owner: UInt32) -> String {
    "it belongs to the user \(owner): see whether HOME and the XDG_… variables name this user's folders"
  }
}
