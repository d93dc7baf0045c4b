import CSystem

/// A change of a child, as waitpid(2) reports it.
package enum ChildState: Equatable, Sendable {
  /// Nothing has changed.
  case unchanged
  /// A signal has stopped it.
  case stopped(signal: Int32)
  case exited(code: Int32)
  case ended(signal: Int32)

  /// Looks without waiting. A child that has ended is gone afterwards.
  ///
  /// - Throws: ECHILD: the process is no child.
  package init(of child: Int32) throws(Errno) {
    var value: Int32 = 0
    switch unsafe linux_child_state(child, &value) {
    case 0: self = .unchanged
    case 1: self = .exited(code: value)
    case 2: self = .ended(signal: value)
    case 3: self = .stopped(signal: value)
    default: throw .current
    }
  }
}

/// The leader of the session of a program that `ProgramStart` started with a terminal.
package enum ProgramMonitor {
  /// Stands for a child of this process until that ends, and ends as it does: then the process that waits for this one sees
  /// its stops and its end.
  package static func run(_ child: Int32) -> Never { linux_monitor(child) }
}
