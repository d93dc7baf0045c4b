import ClusterRecords
import EtcdClient
import Model
import VaultRecords

extension ClusterCollection {
  /// Checks that what is stored goes on from what this device has seen: the commits in between lead from the digest that was seen to that
  /// of the head. More than 4,080 are not looked at, as they are not kept.
  ///
  /// - Throws: `readOnly` where it is another history, or nothing proves that it is not; `unreachable`, `damaged`, `locked`.
  func checkHistory(of fresh: VerifiedCopy<Content>) throws(StoreError) {
    guard let seen = session.seen.chain(of: place.head), fresh.version >= seen.version else { return }
    let missing = fresh.version - seen.version
    guard missing < CommitBlock.provable else { return }
    guard missing >= CommitBlock.size else {
      let commits = fresh.head.operations.prefix(Int(clamping: missing))
      guard UInt64(commits.count) == missing, seen.chain.appending(commits.reversed()) == fresh.head.chain
      else { throw StoreError(session.seen.refuseHistory(.isOther)) }
      return
    }
    try checkStored(since: seen, to: fresh)
  }

  /// Head and commits are read at one revision: others may have changed the collection since it was read, or removed it.
  private func checkStored(
    since seen: (version: UInt64, chain: CommitChain), to fresh: VerifiedCopy<Content>
  ) throws(StoreError) {
    let first = seen.version / CommitBlock.size
    let values: [[KeyValue]]
    do throws(ClusterError) {
      values = try session.read([
        KeyRange(key: place.head), KeyRange(start: place.commits(first), end: place.commits(.max)),
      ]).values
    } catch { throw StoreError(error) }
    // Where it was removed meanwhile, it can't be read anyway.
    guard let stored = values[0].first else { throw VerifiedCopy<Content>.incomplete }
    let (head, version, _) = try VerifiedCopy<Content>.open(head: stored, place, session.keys)
    guard version >= fresh.version else { throw StoreError(session.seen.refuseHistory(.isOther)) }
    // The first of the commits may not be kept any more: the next reading begins with this head.
    guard version - seen.version < CommitBlock.provable else {
      throw .unreachable(reason: "the cluster changes faster than it can be read")
    }
    let blocks = Dictionary(values[1].map { ($0.key, $0.value) }) { $1 }
    var chain = seen.chain
    var next = seen.version
    while next < version {
      next += 1
      guard let commit = commit(next, head, version, blocks) else {
        throw StoreError(session.seen.refuseHistory(.isUnproven))
      }
      chain = chain.appending([commit])
      if next == fresh.version, chain != fresh.head.chain {
        throw StoreError(session.seen.refuseHistory(.isOther))
      }
    }
    guard chain == head.chain else { throw StoreError(session.seen.refuseHistory(.isOther)) }
  }

  /// The commit that made a version: the head names the last ones, a block the others. nil: it is not kept.
  private func commit(
    _ version: UInt64, _ head: CollectionHead, _ last: UInt64, _ blocks: [[UInt8]: [UInt8]]
  ) -> Operation? {
    let back = Int(clamping: last - version)
    if back < head.operations.count { return head.operations[back] }
    guard let block = blocks[place.commits(version / CommitBlock.size)],
      let commits = try? CommitBlock.decode(block)
    else { return nil }
    let index = Int(clamping: CommitBlock.last &- version % CommitBlock.size)
    return index < commits.count ? commits[index] : nil
  }
}

extension CommitChain {
  /// The digest after further commits, the oldest first.
  fileprivate func appending(_ commits: some Sequence<Operation>) -> CommitChain {
    commits.reduce(self) { $0.appending($1) }
  }
}
