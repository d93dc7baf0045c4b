/// How far a watch has reported, and the fragments that it has: it makes reports out of replies with fragments, repetitions and
/// progress.
struct WatchHistory {
  /// The first revision that was not reported. 0: the one behind the present, which the first reply says.
  private(set) var next: Int64
  /// The changes of a reply of which more fragments follow.
  private var fragments: [KeyChange] = []

  init(from revision: Int64) {
    next = revision
  }

  /// A new stream, on which nothing of an earlier one goes on.
  mutating func reconnected() {
    fragments = []
  }

  /// Takes a reply that has no error, and gives what is to be reported. `isProgressOrdered`: progress that was asked for is never
  /// ahead of changes. Before 3.4.25 and 3.5.8 of etcd it may be (issue 15220 of etcd).
  ///
  /// - Throws: for changes that are not in the order of their revisions.
  mutating func take(_ reply: WatchReply, isProgressOrdered: Bool) throws(WireError) -> [WatchReport] {
    if reply.isCreated {
      if next == 0 { next = following(reply.header.revision) }
      return []
    }
    fragments += reply.changes
    if reply.isFragment { return [] }
    defer { fragments = [] }
    if fragments.isEmpty { return progress(reply, isProgressOrdered) }
    return try report(fragments)
  }

  private mutating func progress(_ reply: WatchReply, _ isProgressOrdered: Bool) -> [WatchReport] {
    let isOrdered = reply.watch >= 0 || isProgressOrdered
    let revision = reply.header.revision
    guard isOrdered, revision >= next else { return [] }
    next = following(revision)
    return [.progress(revision: revision)]
  }

  /// The changes by their revisions, without those that were reported before.
  private mutating func report(_ changes: [KeyChange]) throws(WireError) -> [WatchReport] {
    var reports: [WatchReport] = []
    var last: Int64 = 0
    var rest = changes[...]
    while let revision = rest.first?.revision {
      guard revision > last else { throw .malformed }
      last = revision
      let count = rest.prefix { $0.revision == revision }.count
      if revision >= next {
        reports.append(.changes(Array(rest.prefix(count)), revision: revision))
        next = following(revision)
      }
      rest = rest.dropFirst(count)
    }
    return reports
  }

  private func following(_ revision: Int64) -> Int64 {
    revision == .max ? revision : revision &+ 1
  }
}

extension MemberStatus {
  /// Whether progress that a watch asks for comes in the order of the changes: from 3.4.25 and 3.5.8 on.
  var isProgressOrdered: Bool {
    let parts = version.split(separator: ".").compactMap { Int($0.prefix { $0.isNumber }) }
    guard parts.count >= 3 else { return false }
    switch (parts[0], parts[1]) {
    case (3, 4): return parts[2] >= 25
    case (3, 5): return parts[2] >= 8
    default: return parts[0] > 3 || parts[0] == 3 && parts[1] > 5
    }
  }
}
