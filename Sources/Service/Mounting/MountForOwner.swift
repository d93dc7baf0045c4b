import Glibc
import Model
import Platform

/// A mount that root makes for another user, as fusermount3 makes one for its caller.
package enum MountForOwner {
  /// mount(2); the descriptor of /dev/fuse, which serves it.
  ///
  /// - Throws: `Failure`
  package static func make(
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
  /// The arguments for mount(2), as fusermount3 would pass them on.
  fileprivate var mountFlags: UInt {
    let known: [String: Int] = [
      "noatime": MS_NOATIME, "nodiratime": MS_NODIRATIME, "sync": MS_SYNCHRONOUS, "dirsync": MS_DIRSYNC,
    ]
    let chosen = forKernel.compactMap { known[$0] } + (isReadOnly ? [MS_RDONLY] : [])
    return UInt(chosen.reduce(MS_NOSUID | MS_NODEV | MS_NOEXEC, |))
  }
}
