import CSystem
import Glibc

// The process among those that it starts and that started it.
extension CurrentProcess {
  /// The words of the command line behind the program's name; nil: a word that is not UTF-8.
  package static var arguments: [String?] {
    // SAFETY: the C runtime gives `argc` pointers to strings that end with NUL and live as long as the process.
    let words = unsafe UnsafeBufferPointer(start: CommandLine.unsafeArgv, count: Int(CommandLine.argc))
    return unsafe words.dropFirst().map { word in unsafe word.flatMap { unsafe String(validatingCString: $0) } }
  }

  /// prctl(2) PR_SET_CHILD_SUBREAPER: a process that descends from this one becomes its child when its parent ends.
  package static func adoptOrphans() throws(Errno) {
    try Errno.retrying { linux_adopt_orphans() }
  }

  /// kill(2) with SIGKILL of each process of this one's group, itself too.
  package static func killGroup() {
    kill(0, SIGKILL)
  }
}

extension ProcessNumber {
  /// waitid(2) with WNOWAIT: whether a signal ended a child, which stays to be waited for. False also where it has not ended,
  /// or is no child.
  package static func wasEndedBySignal(_ child: Int32) -> Bool {
    var information = unsafe siginfo_t()
    guard unsafe waitid(P_PID, id_t(bitPattern: child), &information, WEXITED | WNOWAIT | WNOHANG) == 0 else {
      return false
    }
    // Where no child has ended, the number of the signal is 0.
    return unsafe information.si_signo == SIGCHLD && information.si_code != 1 /* CLD_EXITED */
  }
}
