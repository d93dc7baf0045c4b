import EtcdClient

/// The cluster by the client that the mount has too, without Keyhole's sealing and checks.
final class RawCluster {
  private let cluster: EtcdCluster

  /// `endpoint`: HOST:PORT of a server without TLS.
  init(_ endpoint: String) throws(Failure) {
    guard let server = EtcdEndpoint(endpoint, isSecure: false) else {
      throw Failure("\(endpoint): no HOST:PORT")
    }
    cluster = EtcdCluster(EtcdCluster.Configuration(endpoints: [server]))
  }

  func close() { cluster.close() }

  func get(_ key: String) throws(Failure) {
    let reply: RangeReply
    do throws(ClusterError) {
      reply = try cluster.read(RangeRequest(KeyRange(key: Array(key.utf8))))
    } catch {
      throw Failure("\(key): \(error)")
    }
    guard reply.values.count == 1 else { throw Failure("\(key): it is not there") }
  }

  func put(_ key: String, _ value: String) throws(Failure) {
    try commit(ClusterTransaction([.put(key: Array(key.utf8), value: Array(value.utf8), lease: 0)]))
  }

  /// A transaction with a condition, as a set of Keyhole is.
  func replace(_ key: String, _ value: String) throws(Failure) {
    let bytes = Array(key.utf8)
    try commit(
      ClusterTransaction(
        [.put(key: bytes, value: Array(value.utf8), lease: 0)],
        if: [.version(key: Array((key + "/absent").utf8), equals: 0)],
        otherwise: [.read(RangeRequest(KeyRange(key: bytes)))]))
  }

  /// The lengths of the sealed records that a set of Keyhole stores in one transaction: a head, the setting, and the value that it had.
  private static let lengths = [497, 129, 161]

  private func keys(_ prefix: String) -> [[UInt8]] {
    Self.lengths.indices.map { Array("\(prefix)/\($0)".utf8) }
  }

  /// Both keys that a secret of Keyhole's is read from, in one linearizable transaction: the head of the items, and the secret.
  func getTogether(_ prefix: String) throws(Failure) {
    let reads = keys(prefix).prefix(2).map { KeyOperation.read(RangeRequest(KeyRange(key: $0))) }
    let reply: TransactionReply
    do throws(ClusterError) { reply = try cluster.commit(ClusterTransaction(reads)) } catch {
      throw Failure("\(prefix): \(error)")
    }
    guard reply.values.count == 2, reply.values.allSatisfy({ $0.count == 1 }) else {
      throw Failure("\(prefix): it is not there")
    }
  }

  /// A transaction of as many keys, bytes and conditions as a set of Keyhole's.
  func replaceTogether(_ prefix: String, _ value: String) throws(Failure) {
    let keys = keys(prefix)
    let puts = zip(keys, Self.lengths).map { key, length in
      KeyOperation.put(
        key: key, value: Array(value.utf8) + Array(repeating: 7, count: max(0, length - value.utf8.count)),
        lease: 0)
    }
    try commit(
      ClusterTransaction(
        puts, if: keys.map { .version(key: $0 + Array("/absent".utf8), equals: 0) },
        otherwise: [.read(RangeRequest(KeyRange(key: keys[0])))]))
  }

  private func commit(_ transaction: ClusterTransaction) throws(Failure) {
    let reply: TransactionReply
    do throws(ClusterError) { reply = try cluster.commit(transaction) } catch { throw Failure("\(error)") }
    guard reply.didSucceed else { throw Failure("a transaction's condition did not hold") }
  }

  /// `changed` is called for each change of the keys with a prefix, from the thread of the watch.
  func watch(_ prefix: String, ready: @escaping @Sendable () -> Void, changed: @escaping @Sendable () -> Void)
    -> any ClusterWatch
  {
    cluster.watch(KeyRange(prefix: Array(prefix.utf8)), from: 0) { report in
      switch report {
      case .connected: ready()
      case .changes: changed()
      default: break
      }
    }
  }
}
