import CSystem
import Glibc
import Model
import Platform

/// The user whose stores a mount of root shows: the options `uid=` and `gid=`.
///
/// Root only mounts; before any store is opened the process becomes that user, for good.
package struct MountOwner {
  let user: uid_t
  let group: gid_t
  private let name: String
  private let home: String

  /// nil: the options name no user, and the mount belongs to the user of this process.
  ///
  /// - Throws: `Failure` where the user is unknown, or may not mount for another.
  package init?(_ options: MountOptions) throws {
    guard options.user != nil || options.group != nil else { return nil }
    let entry = try Self.entry(options.user)
    user = entry.user
    group = try options.group.map(Self.group) ?? entry.group
    name = entry.name
    home = entry.home
    if User.real == user, getgid() == group { return nil }
    guard User.real == 0 else {
      throw Failure(nil, "only root can mount for another user; leave `uid=` and `gid=` out, or use sudo")
    }
  }

  private typealias Entry = (user: uid_t, group: gid_t, name: String, home: String)

  /// By name or by number, as chown(1) takes it.
  private static func entry(_ text: String?) throws -> Entry {
    let found =
      unsafe text.map { text in
        unsafe getpwnam(text) ?? (uid_t(text).flatMap { unsafe getpwuid($0) })
      } ?? getpwuid(User.real)
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
  package func become() throws {
    let isDone = unsafe initgroups(name, group) == 0 && setgid(group) == 0 && setuid(user) == 0
    guard isDone, User.real == user, geteuid() == user, getgid() == group else {
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
    guard Files.allows([.read, .write], folder + "/bus") else { return }
    unsafe setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=\(folder)/bus", 1)
  }
}
