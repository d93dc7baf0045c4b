import Model
import Platform
import Store

/// The limits of the system that may be too low.
enum SystemLimits {
  /// The report of `keyhole doctor` about it.
  static func problems(_ places: StoragePaths) -> [Problem] {
    inotify { readFile($0) } + memory + runtime(places)
  }

  /// Changes from outside are heard of by inotify(7), one instance and a few watches a mount.
  static func inotify(_ read: (_ path: String) -> String) -> [Problem] {
    [("max_user_instances", 16), ("max_user_watches", 1024)].compactMap { name, least in
      let path = "/proc/sys/fs/inotify/\(name)"
      guard let number = Int(read(path).split(separator: "\n").first ?? ""), number < least else {
        return nil
      }
      return Problem(
        subject: path, reason: "it is \(number): changes that others make may go unnoticed",
        remedy: "`sudo sysctl fs.inotify.\(name)=\(least)`")
    }
  }

  /// Secrets lie in locked memory, which swap can't take. Memory of memfd_secret(2) counts as locked too.
  private static var memory: [Problem] {
    memory(ResourceLimit.lockedMemory.values)
  }

  /// The same of a limit of locked memory. Every process of Keyhole raises its own to the hard one.
  static func memory(_ limit: ResourceLimit.Values) -> [Problem] {
    guard limit.highest < 1024 * 1024 else { return [] }
    return [
      Problem(
        subject: "RLIMIT_MEMLOCK",
        reason: "\(limit.highest / 1024) KiB of memory may be locked, and a large secret takes more",
        remedy: remedy)
    ]
  }

  /// A limit that is enough for everything, in KiB.
  private static let enough = 8192

  private static let remedy =
    "`sudo prlimit --pid $$ --memlock=\(enough * 1024)` in this shell, `LimitMEMLOCK=8M` in a service's unit, or for "
    + "each login the line `* - memlock \(enough)` in /etc/security/limits.conf"

  /// A user who can write there could put another socket in the place of ours.
  private static func runtime(_ places: StoragePaths) -> [Problem] {
    guard let status = try? Files.status(places.runtime, followingLinks: false) else { return [] }
    guard status.owner != User.real || status.isShared else { return [] }
    let path = places.runtime.quotedForShell
    return [
      Problem(
        subject: places.runtime, reason: "others can use it",
        remedy: status.owner == User.real
          ? "`chmod 700 \(path)`" : "`sudo chown $(id -u) \(path) && chmod 700 \(path)`")
    ]
  }
}
