import Platform

extension Caller {
  /// Whether the process was started by another one, directly or through processes between the two, or is that one.
  ///
  /// Every process of a terminal can join the process groups of its session (setpgid(2)). A parent can't be chosen: a
  /// process gets one when it is made, and when that ends the nearest ancestor that adopts orphans
  /// (PR_SET_CHILD_SUBREAPER), else init(1). So the answer is right for every later time if `ancestor` adopts orphans.
  public func descends(from ancestor: Identity.Process) -> Bool {
    let identity = identity()
    guard let process = identity.process else { return false }
    // Asked last, so that what was read of the first process belongs to the one that called.
    return process.descends(from: ancestor) && identity.isUnchanged
  }
}

extension Caller.Identity.Process {
  /// So many generations are followed: a process may make its own as long as it wants.
  private static let mostGenerations = 100

  fileprivate func descends(from ancestor: Self) -> Bool {
    self == ancestor || ancestors.contains(ancestor)
  }

  /// The processes above it, the nearest first.
  var ancestors: [Self] {
    var found: [Self] = []
    var process = self
    while found.count < Self.mostGenerations, let parent = process.parent {
      found.append(parent)
      process = parent
    }
    return found
  }

  /// Whether its session is led by `leader`, or was.
  func isMember(of leader: Self) -> Bool { ProcessFiles(number).status?.session == leader.number }

  /// The parent with its start; nil: there is none here, or one of the two has ended meanwhile.
  private var parent: Self? {
    guard let number = numberOfParent, let start = ProcessFiles(number).status?.start else { return nil }
    // If the parent had ended before its start was read, this process would have another parent now. So the start is not
    // that of a later process with the same number.
    guard numberOfParent == number else { return nil }
    return Self(number: number, start: start)
  }

  private var numberOfParent: Int32? {
    guard let status = ProcessFiles(number).status, status.start == start else { return nil }
    return status.parent.flatMap { $0 > 0 ? $0 : nil }
  }
}
