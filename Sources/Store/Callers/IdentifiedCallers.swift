import Platform
import Synchronization

/// Executables of processes that let this one see them before they closed themselves to others (PR_SET_DUMPABLE).
///
/// `keyhole` makes itself unreadable before it holds a secret. It connects to the mount's process first, waits until that
/// has looked at it, and only then goes on. An entry counts for one process, and until that ends.
public enum IdentifiedCallers {
  private static let known = Mutex<[Caller.Identity.Process: Entry]>([:])
  /// So many at once: each is a process of the user's that is alive.
  private static let limit = 4096
  /// From so many on, those that have ended are dropped before another one is kept.
  static let mostWithoutSearch = 32

  private struct Entry {
    let executable: Caller.Identity.Executable
    let handle: ProcessHandle
    let started: Caller.Identity.Executable?
    let helped: Caller.Identity.HelpedProgram?
  }

  /// Keeps the executable of an identified process, and the program that it serves.
  ///
  /// - Parameters:
  ///   - identity: the process.
  ///   - started: of `keyhole run` the program that it says to start. It is shown to a person as that, so it is kept only if the
  ///     path leads to the file here too.
  /// - Returns: false: the process is unidentified, has ended, or there are too many.
  @discardableResult
  public static func remember(
    _ identity: Caller.Identity, starting started: Caller.Identity.Executable? = nil
  ) -> Bool {
    guard let process = identity.process, let executable = identity.executable, identity.isUnchanged,
      let handle = ProcessHandle(process: process.number),
      ProcessFiles(process.number).status?.start == process.start
    else { return false }
    let program = started.flatMap { $0.path.hasPrefix("/") && FileID($0.path) == $0.file ? $0 : nil }
    return known.withLock { known in
      // Each has a descriptor: those of processes that have ended are not to fill the table of this one.
      if known.count >= mostWithoutSearch { known = known.filter { $0.value.handle.isAlive } }
      guard known.count < limit else { return false }
      known[process] = Entry(
        executable: executable, handle: handle, started: program, helped: identity.helped)
      return true
    }
  }

  /// nil: the process was not remembered, or has ended.
  static func executable(of process: Caller.Identity.Process) -> Caller.Identity.Executable? {
    entry(of: process)?.executable
  }

  /// nil: the process was not remembered with one, or has ended.
  static func startedProgram(of process: Caller.Identity.Process) -> Caller.Identity.Executable? {
    entry(of: process)?.started
  }

  /// As it was when the process was remembered; nil: it was not, or has ended.
  static func helped(by process: Caller.Identity.Process) -> Caller.Identity.HelpedProgram? {
    entry(of: process)?.helped
  }

  private static func entry(of process: Caller.Identity.Process) -> Entry? {
    known.withLock { known in
      guard let entry = known[process] else { return nil }
      if entry.handle.isAlive { return entry }
      known[process] = nil
      return nil
    }
  }
}
