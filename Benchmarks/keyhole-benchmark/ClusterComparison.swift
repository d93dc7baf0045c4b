import EtcdClient
import Glibc

/// A store in a cluster, mounted, beside the cluster's own calls by the same client.
struct ClusterComparison {
  private static let prefix = "/benchmark/"

  private let ours: String
  private let local: String
  private let endpoint: String
  private let rounds: Int

  init(_ arguments: Arguments) throws(Failure) {
    ours = try arguments.required("ours")
    local = try arguments.required("local")
    endpoint = try arguments.required("endpoint")
    rounds = try arguments.number("rounds", default: 40)
  }

  func measure() throws(Failure) -> Table {
    let cluster = try RawCluster(endpoint)
    defer { cluster.close() }
    try cluster.put(Self.prefix + "read", Stores.value)
    let ourSuite = Stores.suite(Stores.few, in: ours)
    for mount in [ours, local] {
      try makeFolder(Stores.suite(Stores.few, in: mount))
      try Folder(Stores.suite(Stores.few, in: mount)).write(Stores.value + "\n", to: Stores.key(1))
    }
    try makeFolder(Stores.item(in: ours))
    try Folder(Stores.item(in: ours)).write(Stores.value + "\n", to: "value")
    var table = Table()
    try measureReading(ourSuite, cluster, into: &table)
    try measureWriting(ourSuite, cluster, into: &table)
    return table
  }

  private func measureReading(
    _ suite: String, _ cluster: RawCluster, into table: inout Table
  ) throws(Failure) {
    let settings = try Folder(suite)
    let files = try Folder(Stores.suite(Stores.few, in: local))
    let item = try Folder(Stores.item(in: ours))
    try table.append(
      "open+read+close, setting", target: .ratio(1.1), plan: Plan(rounds: rounds, batch: 200),
      ours: { () throws(Failure) in try settings.read(Stores.key(1)) },
      against: "of a property list", { () throws(Failure) in try files.read(Stores.key(1)) })
    try table.append(
      "open+read+close, secret", target: .ratio(1.2), plan: Plan(rounds: rounds, batch: 50),
      ours: { () throws(Failure) in try item.read("value") },
      against: "linearizable get", { () throws(Failure) in try cluster.get(Self.prefix + "read") })
    try cluster.replaceTogether(Self.prefix + "together", Stores.value)
    try table.append(
      "open+read+close, secret", plan: Plan(rounds: rounds, batch: 50),
      ours: { () throws(Failure) in try item.read("value") },
      against: "get of the same two keys",
      { () throws(Failure) in try cluster.getTogether(Self.prefix + "together") })
  }

  private func measureWriting(
    _ suite: String, _ cluster: RawCluster, into table: inout Table
  ) throws(Failure) {
    let settings = try Folder(suite)
    let item = try Folder(Stores.item(in: ours))
    var (value, other, third) = (Values(), Values(), Values())
    let plan = Plan(rounds: rounds, batch: 20)
    try table.append(
      "open+write+close, setting", target: .ratio(1.3), plan: plan,
      ours: { () throws(Failure) in try settings.write(value(), to: Stores.key(1)) },
      against: "one transaction",
      { () throws(Failure) in try cluster.replace(Self.prefix + "written", other()) })
    try table.append(
      "open+write+close, setting", plan: plan,
      ours: { () throws(Failure) in try settings.write(value(), to: Stores.key(1)) },
      against: "transaction of the same size",
      { () throws(Failure) in try cluster.replaceTogether(Self.prefix + "together", other()) })
    try table.append(
      "open+write+close, secret", plan: plan,
      ours: { () throws(Failure) in try item.write(third(), to: "value") }, against: "one transaction",
      { () throws(Failure) in try cluster.replace(Self.prefix + "written", other()) })
  }
}
