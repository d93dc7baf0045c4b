import Platform

/// The processes that a refusal given to one of them is valid for: what a person has started, and all that it starts.
///
/// That is the process that was refused, with those above it up to the leader of its session (setsid(2)), and everything that
/// descends from these, also in other sessions. The leader is not among them, unless it was refused itself: it is the shell of a
/// terminal, and the next command that a person types there may ask.
struct ProcessTree: Sendable {
  typealias Process = Caller.Identity.Process

  /// The topmost process of it.
  let root: Process
  /// The leader of the session of the process that was looked at. Those whose leader is outside of this pid namespace, as in a
  /// container, count as one session.
  let session: Process
  /// The process that was looked at, and those above it.
  private let lineage: [Process]
  /// Whether no process leads from this one to the leader of its session: one between them has ended.
  private let isDetached: Bool

  /// The tree of a process, as it is now.
  init(of caller: Caller.Identity) {
    let none = Process(number: 0, start: 0)
    session = caller.session ?? none
    guard let process = caller.process else {
      (root, lineage, isDetached) = (none, [], true)
      return
    }
    lineage = [process] + process.ancestors
    if let leader = lineage.firstIndex(of: session) {
      root = lineage[max(0, leader - 1)]
      isDetached = false
    } else {
      let session = session
      root = lineage.prefix { $0 == process || $0.isMember(of: session) }.last ?? process
      isDetached = true
    }
  }

  /// Whether a refusal that was given to `other` is valid for this process: it descends from that tree, or both are of one session
  /// and this one has no place in its leader's tree any more.
  func isCovered(byRefusalOf other: ProcessTree) -> Bool {
    lineage.contains(other.root) || isDetached && session == other.session
  }
}
