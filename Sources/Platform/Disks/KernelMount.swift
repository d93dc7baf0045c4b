import Glibc

/// The calls that change the mounts of this process's namespace.
package enum KernelMount {
  /// Flags of mount(2).
  package struct Flags: OptionSet, Sendable {
    package let rawValue: UInt
    package init(rawValue: UInt) { self.rawValue = rawValue }

    package static let readOnly = Flags(rawValue: UInt(MS_RDONLY))
    package static let noSetUser = Flags(rawValue: UInt(MS_NOSUID))
    package static let noDevices = Flags(rawValue: UInt(MS_NODEV))
    package static let noPrograms = Flags(rawValue: UInt(MS_NOEXEC))
    package static let noAccessTimes = Flags(rawValue: UInt(MS_NOATIME))
    package static let noFolderAccessTimes = Flags(rawValue: UInt(MS_NODIRATIME))
    package static let synchronous = Flags(rawValue: UInt(MS_SYNCHRONOUS))
    package static let synchronousFolders = Flags(rawValue: UInt(MS_DIRSYNC))
  }

  /// mount(2). - Throws: EPERM for users other than root.
  package static func add(
    _ source: String, at path: String, type: String, _ flags: Flags, data: String
  ) throws(Errno) {
    try Errno.retrying {
      // SAFETY: the strings live until the call returns.
      unsafe data.withCString { data in unsafe mount(source, path, type, flags.rawValue, data) }
    }
  }

  /// umount2(2); lazily with MNT_DETACH: what has files open there keeps them. A symbolic link is followed unless
  /// UMOUNT_NOFOLLOW is asked for.
  ///
  /// - Throws: EBUSY; EPERM for users other than root; EINVAL: nothing is mounted there.
  package static func remove(_ path: String, lazily: Bool, followingLinks: Bool = true) throws(Errno) {
    let flags = (lazily ? Int32(MNT_DETACH) : 0) | (followingLinks ? 0 : Int32(UMOUNT_NOFOLLOW))
    try Errno.retrying { unsafe umount2(path, flags) }
  }
}
