import Glibc

/// A user of the system, as passwd(5) or another source of nsswitch.conf(5) has it.
package struct Account: Sendable {
  package let name: String
  package let user: UInt32
  package let group: UInt32
  /// The home folder.
  package let home: String

  /// getpwnam(3), and getpwuid(3) where no user has that name and it is a number; nil: there is no such user.
  package init?(_ text: String) {
    guard let entry = unsafe getpwnam(text) else {
      guard let number = UInt32(text) else { return nil }
      self.init(number: number)
      return
    }
    unsafe self.init(entry)
  }

  /// getpwuid(3); nil: no user has the number.
  package init?(number: UInt32) {
    guard let entry = unsafe getpwuid(number) else { return nil }
    unsafe self.init(entry)
  }

  private init(_ entry: UnsafeMutablePointer<passwd>) {
    // SAFETY: the entry stands until the next look-up, and its strings are copied before.
    name = unsafe String(cString: entry.pointee.pw_name)
    user = unsafe entry.pointee.pw_uid
    group = unsafe entry.pointee.pw_gid
    home = unsafe entry.pointee.pw_dir.map { unsafe String(cString: $0) } ?? ""
  }

  /// getgrnam(3): the number of a group, by its name or as the number itself; nil: no group has the name.
  package static func group(_ text: String) -> UInt32? {
    guard let entry = unsafe getgrnam(text) else { return UInt32(text) }
    return unsafe entry.pointee.gr_gid
  }

  /// Gives the process the rights of this user, for good, with a group as its main one: initgroups(3), setgid(2), setuid(2).
  ///
  /// - Throws: EPERM; the process must then end, as it may have lost some rights already.
  package func become(group: UInt32) throws(Errno) {
    try Errno.retrying { unsafe initgroups(name, group) }
    try Errno.retrying { setgid(group) }
    try Errno.retrying { setuid(user) }
    let isDone = getuid() == user && geteuid() == user && getgid() == group && getegid() == group
    guard isDone else { throw .EPERM }
  }
}
