import CSystem
import Glibc

/// The user whose stores a mount of root shows: the options `uid=` and `gid=`.
///
/// Root only mounts; before any store is opened the process becomes that user, for good.
struct MountOwner {
  let user: uid_t
  let group: gid_t
  private let name: String
  private let home: String

  /// nil where the mount is for who asks.
  ///
  /// - Throws: `Failure` where the user is unknown, or may not mount for another.
  init?(_ options: MountOptions) throws {
    guard options.user != nil || options.group != nil else { return nil }
    let entry = try Self.entry(options.user)
    user = entry.user
    group = try options.group.map(Self.group) ?? entry.group
    name = entry.name
    home = entry.home
    if getuid() == user, getgid() == group { return nil }
    guard getuid() == 0 else {
      throw Failure(nil, "only root can mount for another user; leave `uid=` and `gid=` out, or use sudo")
    }
  }

  private typealias Entry = (user: uid_t, group: gid_t, name: String, home: String)

  /// By name or by number, as chown(1) takes it.
  private static func entry(_ text: String?) throws -> Entry {
    let found =
      unsafe text.map { text in
        unsafe getpwnam(text) ?? (uid_t(text).flatMap { unsafe getpwuid($0) })
      } ?? getpwuid(getuid())
    guard let entry = unsafe found else { throw Failure(nil, "there is no user `\(text ?? "")`") }
    // SAFETY: the entry stands until the next look-up, and its strings are copied before.
    return unsafe (
      entry.pointee.pw_uid, entry.pointee.pw_gid, String(cString: entry.pointee.pw_name),
      String(cString: entry.pointee.pw_dir)
    )
  }

  private static func group(_ text: String) throws -> gid_t {
    if let entry = unsafe getgrnam(text) { return unsafe entry.pointee.gr_gid }
    guard let number = gid_t(text) else { throw Failure(nil, "there is no group `\(text)`") }
    return number
  }

  /// Variables that are not root's alone: where systemd waits to be notified.
  private static let kept = ["NOTIFY_SOCKET"]

  /// Gives up root's rights and root's environment: what runs as the user gets none of it.
  ///
  /// - Throws: `Failure`; the process must then end.
  func become() throws {
    let isDone = unsafe initgroups(name, group) == 0 && setgid(group) == 0 && setuid(user) == 0
    guard isDone, getuid() == user, geteuid() == user, getgid() == group else {
      throw Failure(nil, "it can't become user \(name): \(systemMessage(errno))")
    }
    let kept = Self.kept.compactMap { name in environment(name).map { (name, $0) } }
    guard linux_clear_environment() == 0 else {
      throw Failure(nil, "the environment can't be cleared")
    }
    let own = [
      ("HOME", home), ("USER", name), ("LOGNAME", name), ("PATH", "/usr/local/bin:/usr/bin:/bin"),
      ("LC_ALL", "C.UTF-8"),
    ]
    for (name, value) in own + kept { unsafe setenv(name, value, 1) }
    useRuntimeFolder()
    unsafe chdir("/")
  }

  /// Of a user who is logged in; at boot there is none yet.
  private func useRuntimeFolder() {
    let folder = "/run/user/\(user)"
    var status = stat()
    guard unsafe lstat(folder, &status) == 0, status.st_uid == user else { return }
    unsafe setenv("XDG_RUNTIME_DIR", folder, 1)
    guard unsafe access(folder + "/bus", R_OK | W_OK) == 0 else { return }
    unsafe setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=\(folder)/bus", 1)
  }
}

/// The folder that root mounts on for another user, by its descriptor: what was checked is what is mounted on.
///
/// The user may rename and replace what leads to it at any time. So it is opened as the user, and no symbolic link is
/// followed; afterwards only the descriptor is used.
final class OwnedMountPoint {
  let path: String
  private let descriptor: Int32

  /// - Throws: `Failure` with what to do.
  init(_ path: String, for owner: MountOwner, _ options: MountOptions) throws {
    try MountPoint.clearDead(path, owner)
    let descriptor = unsafe linux_open_path_as(owner.user, owner.group, path)
    guard descriptor >= 0 else { throw Self.failure(path, errno) }
    self.descriptor = descriptor
    self.path = MountPoint.absolute(Self.link(to: descriptor))
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { throw Self.failure(path, errno) }
    guard !options.takesUsersFolderOnly || status.st_uid == owner.user || status.st_uid != 0 else {
      throw Failure(
        path,
        "it belongs to root, and is not the path that was typed, so that a symbolic link may lead there; name the folder itself"
      )
    }
    try MountPoint.checkFree(self.path)
    try MountPoint.check(status, path, contents: Self.link(to: descriptor), users: [0, owner.user])
  }

  deinit { close(descriptor) }

  /// A path that leads to the folder, whatever its name is now.
  var link: String { Self.link(to: descriptor) }

  private static func link(to descriptor: Int32) -> String { "/proc/self/fd/\(descriptor)" }

  private static func failure(_ path: String, _ error: Int32) -> Failure {
    switch error {
    case ENOENT: Failure(path, "there is no such folder; make it with `mkdir`")
    case ELOOP:
      Failure(path, "a part of it is a symbolic link; name the folder itself (`realpath` prints it)")
    case EACCES: Failure(path, "the user can't reach it")
    default: Failure(path, "it can't be used: \(systemMessage(error))")
    }
  }
}

/// A mount that root makes for another user, as fusermount3 makes one for its caller.
enum MountForOwner {
  /// mount(2); the descriptor of /dev/fuse, which serves it.
  ///
  /// - Throws: `Failure`
  static func make(
    at folder: OwnedMountPoint, _ options: MountOptions, for owner: MountOwner
  ) throws -> Int32 {
    let (path, link) = (folder.path, folder.link)
    // SAFETY: a variadic call without its variable part.
    let device = unsafe open("/dev/fuse", O_RDWR | O_CLOEXEC)
    guard device >= 0 else { throw Failure("/dev/fuse", "it can't be opened: \(systemMessage(errno))") }
    var data = "fd=\(device),rootmode=40000,user_id=\(owner.user),group_id=\(owner.group)"
    if options.allowsOthers || options.allowsRoot { data += ",default_permissions,allow_other" }
    let isMounted = unsafe data.withCString { data in
      // SAFETY: every string lives until the call returns.
      unsafe mount(options.source, link, "fuse.keyhole", options.mountFlags, data) == 0
    }
    guard isMounted else { throw Failure(path, "mounting failed: \(systemMessage(errno))") }
    return device
  }
}

extension MountOptions {
  /// What mount(2) takes, as fusermount3 would pass it on.
  fileprivate var mountFlags: UInt {
    let known: [String: Int] = [
      "noatime": MS_NOATIME, "nodiratime": MS_NODIRATIME, "sync": MS_SYNCHRONOUS, "dirsync": MS_DIRSYNC,
    ]
    let chosen = forKernel.compactMap { known[$0] } + (isReadOnly ? [MS_RDONLY] : [])
    return UInt(chosen.reduce(MS_NOSUID | MS_NODEV | MS_NOEXEC, |))
  }
}
