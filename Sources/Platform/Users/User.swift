import Glibc

/// The ids of this process.
package enum User {
  /// geteuid(2): the user whose rights the process has.
  package static var effective: UInt32 { geteuid() }
  /// getuid(2): the user who started the process.
  package static var real: UInt32 { getuid() }
  package static var effectiveGroup: UInt32 { getegid() }
  package static var realGroup: UInt32 { getgid() }
  package static var isRoot: Bool { geteuid() == 0 }

  /// The name of the user who started the process, as getpwuid(3) has it; nil: there is none.
  package static var name: String? {
    guard let entry = unsafe getpwuid(getuid()), let name = unsafe entry.pointee.pw_name else { return nil }
    return unsafe String(cString: name)
  }

  /// The home of the user who started the process, as getpwuid(3) has it; nil: it has none.
  package static var home: String? {
    guard let entry = unsafe getpwuid(getuid()), let home = unsafe entry.pointee.pw_dir else { return nil }
    return unsafe String(cString: home)
  }
}
