import Cluster
import EtcdClient
import EtcdHarness
import Model
import Store
import StoreConformance
import Synchronization
import Testing

/// Changes that are too large for one transaction, on three real servers.
@Suite(.timeLimit(.minutes(2))) struct RealJournalTests {
  /// The client ends after the transaction that stores the change: it holds, it is said, and the next client brings it in.
  @Test func changeThatSpansTransactionsHoldsAndIsSaid() throws {
    let store = try RealStore(try EtcdNodes(), "journal")
    let client = CutClient(store.client())
    let (suites, keychain) = (try store.suites(client), try store.keychain(client))
    defer {
      suites.close()
      keychain.close()
    }
    _ = try suites.create("app")
    let ids = try (0..<150).map { try keychain.add(KeychainSamples.generic(ExactString("i\($0)")), "s").id }
    #expect(suites.journalled == 0 && keychain.journalled == 0)
    client.commits(1)
    _ = try suites.update("app", known: nil) { contents in
      for number in 0..<450 { contents.settings[ExactString("k\(number)")] = Setting(.integer(1)) }
    }
    client.commits(1)
    _ = try keychain.update(ids) { $0.attributes["n"] = [1] }
    #expect(suites.journalled == 5 && keychain.journalled == 3)

    let (others, items) = (try store.suites(), try store.keychain())
    defer {
      others.close()
      items.close()
    }
    let settings = try #require(try others.read("app")?.settings)
    #expect(settings.count == 450 && settings.values.allSatisfy { $0.value == .integer(1) })
    #expect(try items.items().filter { $0.attributes["n"] == [1] }.count == 150)
    #expect(others.journalled == 5 && items.journalled == 3)
    try others.set("k0", .integer(2), in: "app")
    _ = try items.update([ids[0]]) { $0.attributes["n"] = [2] }
    #expect(others.journalled == 0 && items.journalled == 0)
    #expect(try others.read("app")?.settings.count == 450)
    #expect(try items.items().filter { $0.attributes["n"] == [1] }.count == 149)
  }
}

/// A way to a cluster that can be cut after so many transactions.
private final class CutClient: KeyValueCluster {
  private let cluster: EtcdCluster
  private let left = Mutex<Int?>(nil)

  init(_ cluster: EtcdCluster) { self.cluster = cluster }

  /// So many transactions with changes are sent from now on.
  func commits(_ count: Int) { left.withLock { $0 = count } }

  var deadline: Duration { cluster.deadline }

  func read(_ request: RangeRequest) throws(ClusterError) -> RangeReply { try cluster.read(request) }

  func commit(_ transaction: ClusterTransaction) throws(ClusterError) -> TransactionReply {
    let isCut = left.withLock { left in
      guard let count = left, !transaction.conditions.isEmpty else { return false }
      left = max(0, count - 1)
      return count == 0
    }
    if isCut { throw .unavailable("cut") }
    return try cluster.commit(transaction)
  }

  func watch(
    _ range: KeyRange, from revision: Int64, report: @escaping @Sendable (WatchReport) -> Void
  ) -> any ClusterWatch { cluster.watch(range, from: revision, report: report) }
}
