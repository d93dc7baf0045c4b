import Platform

extension Caller.Identity {
  /// The description of a process that a person sees in a question, to recognise a later process that does the same.
  struct Shown: Hashable, Sendable {
    /// The program's path, or why it is not known.
    var program: String
    var script: String?
    var commandLine: String
    /// The programs above it, without the numbers of their processes.
    var starters: [String]
    /// The leader of its session; nil: that has ended, or is the process itself.
    var session: Process?

    /// Whether another process is shown in the same way, in the same session as long as that is there.
    func isShown(by caller: Caller.Identity) -> Bool {
      var other = caller.shown
      guard session == other.session || session == caller.session else { return false }
      other.session = session
      return other == self
    }
  }

  var shown: Shown {
    let starters = parents.map { parent in
      // Behind the last blank is the number.
      String(parent[..<(parent.lastIndex(of: " ") ?? parent.endIndex)])
    }
    return Shown(
      program: programName, script: script, commandLine: commandLine, starters: starters,
      session: leadsSession ? nil : session)
  }

  /// Whether there is no other process that leads its session.
  private var leadsSession: Bool {
    guard let session, session.start > 0 else { return true }
    return session == process || !session.isRunning
  }
}
