import ClusterRecords
import EtcdClient
import Model
import VaultRecords

extension ClusterCollection {
  /// Checks that what is stored goes on from what this device has seen: the commits in between lead from the digest that was seen to that
  /// of the head. More than 4,096 are not looked at, as they are not kept.
  ///
  /// - Throws: `readOnly` where it is another history; `unreachable`.
  func checkHistory(of fresh: VerifiedCopy<Content>) throws(StoreError) {
    guard let seen = session.seen.chain(of: place.head), fresh.version >= seen.version else { return }
    let missing = fresh.version - seen.version
    guard missing < CommitBlock.size * (CommitBlock.most - 1) else { return }
    let commits =
      missing < CommitBlock.size
      ? Array(fresh.head.operations.prefix(Int(missing)))
      : try storedCommits(since: seen.version, to: fresh)
    var chain = seen.chain
    for operation in commits.reversed() { chain = chain.appending(operation) }
    guard UInt64(commits.count) == missing, chain == fresh.head.chain else {
      throw StoreError(session.seen.refuseHistory())
    }
  }

  /// The commits that made the versions after one, the newest first. Those that the head names are its own.
  private func storedCommits(
    since version: UInt64, to fresh: VerifiedCopy<Content>
  ) throws(StoreError) -> [Operation] {
    let first = version / CommitBlock.size
    let values: [KeyValue]
    do throws(ClusterError) {
      let range = KeyRange(start: place.commits(first), end: place.commits(.max))
      values = try session.read([range]).values[0]
    } catch { throw StoreError(error) }
    let stored = Dictionary(values.map { ($0.key, $0.value) }) { $1 }
    var blocks: [UInt64: [Operation]] = [:]
    for block in first...fresh.version / CommitBlock.size {
      blocks[block] = stored[place.commits(block)].flatMap { try? CommitBlock.decode($0) }
    }
    var commits: [Operation] = []
    var next = fresh.version
    while next > version {
      let back = Int(clamping: fresh.version - next)
      if back < fresh.head.operations.count {
        commits.append(fresh.head.operations[back])
      } else {
        let block = next / CommitBlock.size
        let index = Int(clamping: CommitBlock.size - 1 - next % CommitBlock.size)
        guard let operations = blocks[block], index < operations.count else { return commits }
        commits.append(operations[index])
      }
      next -= 1
    }
    return commits
  }
}
