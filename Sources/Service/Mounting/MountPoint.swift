import KeychainSelection
import Model
import Platform

/// The folder that is mounted on, checked before anything is done.
package struct MountPoint {
  package let path: String
  /// The folder was not there before.
  private let isNew: Bool

  /// - Throws: `Failure` with what to do.
  package init(_ argument: String?, _ places: StoragePaths) throws {
    let wanted = argument ?? places.mountPoint
    guard !wanted.isEmpty else {
      throw Failure(nil, "the mount point is an empty path; name a folder of yours")
    }
    isNew = !Files.hasName(wanted)
    if argument == nil || Self.isDefault(wanted, places) { try Self.make(wanted) }
    try Self.clearDead(wanted, nil)
    path = Self.absolute(wanted)
    try Self.checkFree(path)
    try Self.check(wanted)
  }

  /// Nothing was mounted: takes the folder away again, if it was made for that and is empty.
  package func removeIfMade() {
    if isNew { try? Files.removeFolder(path) }
  }

  /// Whether a path is that of the mount point that is taken without an argument.
  static func isDefault(_ path: String, _ places: StoragePaths) -> Bool {
    let path = path.last == "/" ? String(path.dropLast()) : path
    return path.utf8.elementsEqual(places.mountPoint.utf8)
      || Files.name(of: path) == Files.name(of: places.mountPoint)
        && (try? Files.realPath(Files.folder(of: path))) == (try? Files.realPath(places.home))
  }

  /// Makes the folder where it is missing. A mount whose process has died is there too.
  private static func make(_ path: String) throws {
    do throws(Errno) { try Files.makeFolder(path) } catch {
      guard error != .EEXIST, !Files.hasName(path) else { return }
      throw Failure(path, "this folder can't be made: \(error)")
    }
  }

  /// Takes away what an earlier process of ours left when it died.
  static func clearDead(_ path: String, _ owner: MountOwner?) throws {
    // Of a dead mount realpath(3) can't tell either, so the path is taken as it is too.
    let table = MountTable()
    guard let entry = table.entry(at: absolute(path)) ?? table.entry(at: path),
      entry.isKeyhole(of: owner?.user ?? User.real), entry.isDead
    else { return }
    try Unmounting.take(entry.path, lazily: true)
  }

  static func checkFree(_ path: String) throws {
    // Where systemd or autofs(5) waits for the first look, that look has called us.
    guard let entry = MountTable().entry(at: path), entry.type != "autofs" else { return }
    guard entry.type == "fuse.keyhole" else {
      throw Failure(path, "\(entry.type) is mounted there; use another folder")
    }
    throw Failure(
      path, "Keyhole is mounted there already; `keyhole unmount \(path.quotedForShell)` takes it away")
  }

  private static func check(_ path: String) throws {
    let found: FileStatus?
    do throws(Errno) { found = try Files.status(path, followingLinks: false) } catch {
      throw Failure(path, "it can't be used: \(error)")
    }
    guard let status = found else {
      let isBelowFile = (try? Files.status(Files.folder(of: path)))?.isFolder == false
      guard !isBelowFile else { throw Failure(path, "it can't be used: \(Errno.ENOTDIR)") }
      throw Failure(path, "there is no such folder; make it with `mkdir -p`", .notFound)
    }
    guard !status.isLink else { throw Failure(path, "it is a symbolic link; name the folder itself") }
    try check(status, path, contents: path, users: [User.real])
  }

  /// A folder of one of these users, to which no other may write, and in which nothing is.
  static func check(_ status: FileStatus, _ path: String, contents: String, users: [UInt32]) throws {
    guard status.isFolder else { throw Failure(path, "it is not a folder") }
    guard users.contains(status.owner) else {
      throw Failure(path, "it belongs to another user; use a folder of yours")
    }
    guard status.permissions & 0o022 == 0 else {
      throw Failure(path, "others may write to it; `chmod go-w` it first")
    }
    guard names(in: contents).isEmpty else { throw Failure(path, "it is not empty; use an empty folder") }
  }

  /// realpath(3); the path itself where that fails.
  package static func absolute(_ path: String) -> String {
    (try? Files.realPath(path)) ?? path
  }
}
