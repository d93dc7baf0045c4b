import CSystem

// Calls of root in the place of another user.
extension Files {
  /// stat(2) as a user has it: root asks in a process of its own, others as they are. nil: no error.
  package static func statusError(_ path: String, asUser user: UInt32, group: UInt32) -> Errno? {
    let error = unsafe linux_stat_as(user, group, path)
    return error == 0 ? nil : Errno(rawValue: error)
  }
}

extension Descriptor {
  /// Opens a path with O_PATH as a user and group would, component by component, without an automount.
  ///
  /// - Throws: ELOOP: a part of the path is a symbolic link.
  package init(path: String, asUser user: UInt32, group: UInt32) throws(Errno) {
    let number = try Errno.retrying { unsafe linux_open_path_as(user, group, path) }
    self.init(owning: number)
  }

  /// linkat(2) through /proc/self/fd: gives a file of `init(unnamedIn:)` its name. - Throws: EEXIST.
  package func giveName(_ path: String) throws(Errno) {
    try Files.link("/proc/self/fd/\(number)", as: path, followingLinks: true)
  }
}
