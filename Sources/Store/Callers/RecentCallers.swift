import Synchronization

/// The processes that rules have let in lately. To identify one takes some fifty system calls, and four to see that it executes
/// the same program as before.
enum RecentCallers {
  /// So many at once: each has two descriptors.
  private static let limit = 64
  private static let known = Mutex<[ProcessID: Caller.Identity.ForRules]>([:])

  /// nil: the process was not kept, has ended, or has executed a program since.
  static func identity(of process: ProcessID) -> Caller.Identity? {
    guard let entry = known.withLock({ $0[process] }) else { return nil }
    if entry.isUnchanged { return entry.identity }
    known.withLock { known in
      // Another thread may have put a later one there.
      if known[process]?.identity.process == entry.identity.process { known[process] = nil }
    }
    return nil
  }

  /// Does nothing with an identity that has more to compare than the program, or that can't be compared.
  static func keep(_ identity: Caller.Identity) {
    guard let number = identity.process?.number, let entry = Caller.Identity.ForRules(identity) else {
      return
    }
    let process = ProcessID(rawValue: number)
    known.withLock { known in
      if known.count >= limit, known[process] == nil {
        known = known.filter { $0.value.isAlive }
        if known.count >= limit { known.removeAll() }
      }
      known[process] = entry
    }
  }
}
