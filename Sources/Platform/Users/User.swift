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
    Account(number: getuid())?.name
  }

  /// The home of the user who started the process, as getpwuid(3) has it; nil: it has none.
  package static var home: String? {
    Account(number: getuid()).flatMap { $0.home.isEmpty ? nil : $0.home }
  }
}
