import Glibc

/// A change of a setting on one mount of a store in a cluster, until it is known on another one.
struct ClusterChange {
  private let ours: String
  private let theirs: String
  private let rounds: Int

  init(_ arguments: Arguments) throws(Failure) {
    ours = try arguments.required("ours")
    theirs = try arguments.required("theirs")
    rounds = try arguments.number("rounds", default: 40)
  }

  func measure() throws(Failure) -> Table {
    var table = Table()
    try measureChanges(into: &table)
    return table
  }

  /// From before the write on one mount until inotify(7) tells of it on the other.
  private func measureChanges(into table: inout Table) throws(Failure) {
    let written = try Folder(Stores.suite(Stores.few, in: ours))
    let path = Stores.suite(Stores.few, in: theirs)
    // The mount follows a suite that was looked at.
    try wait(for: path + "/" + Stores.key(1))
    let watch = try FileWatch(path)
    var (times, value) = (Samples(), Values())
    for round in 1...rounds * 10 + 10 {
      let began = now()
      try written.write("\(round) \(value())", to: Stores.key(1))
      try watch.wait()
      if round > 10 { times.append([now() - began]) }
    }
    table.append(
      Row("write to inotify event on the other mount", ours: times, target: .seconds(0.01, p99: 0.05)))
  }

  private func wait(for path: String) throws(Failure) {
    let end = now() + 10
    while (try? text(of: path)) == nil {
      guard now() < end else { throw Failure("\(path): it did not come from the other mount") }
      usleep(10_000)
    }
  }
}
