import Glibc

/// Measures operations in a suite of so many keys, and in a vault of so many items.
///
/// The stores of the home have to be empty. Lines `STORE<tab>OPERATION<tab>COUNT<tab>SECONDS` are added to a file; of a
/// listing the seconds are those for one entry, and of `memoryOfEntry` they are bytes.
struct Growth {
  private static let suite = "benchmark.growth"
  private static let memoryOfEntry = "memory, a listed entry"
  /// Of more entries one listing is measured, not the median of five.
  private static let manyEntries = 100_000

  private let keyhole: Keyhole
  private let config: String
  private let count: Int
  private let rounds: Int
  private let output: String
  /// `keys`, `items`, or `all`.
  private let stores: String

  init(_ arguments: Arguments) throws(Failure) {
    keyhole = Keyhole(
      command: try arguments.required("keyhole"), mountpoint: try arguments.required("ours"),
      scratch: try arguments.required("scratch"))
    config = try arguments.required("config")
    count = try arguments.number("count", default: 1_000)
    rounds = try arguments.number("rounds", default: 40)
    output = try arguments.required("output")
    stores = arguments["stores"] ?? "all"
  }

  func measure() throws(Failure) {
    if stores != "items" { try measureKeys() }
    if stores != "keys" { try measureItems() }
  }

  private func measureKeys() throws(Failure) {
    try makeFolder(config)
    try Folder(config).write(Stores.propertyList(keys: count), to: Self.suite + ".plist")
    try mount("keys", "keychain=none")
    let path = "\(keyhole.mountpoint)/defaults/\(Self.suite)"
    try list("keys", path)
    var next = Values()
    try calls("keys", path, Stores.key(1), &next)
    try commands("keys", path: "defaults/\(Self.suite)/\(Stores.key(1))", &next)
    try keyhole.unmount()
  }

  private func measureItems() throws(Failure) {
    let file = keyhole.scratch + "/items.env"
    var text = ""
    for index in 0..<count { text += "\(account(index))='\(Stores.value) \(index)'\n" }
    try appendText(text, to: file)
    let filling = try seconds { () throws(Failure) in
      try Program(
        path: keyhole.command, arguments: ["import", "--to", "keychain/generic/\(Stores.service)", file]
      ).run()
    }
    try add("items", "import, an item", filling / Double(count))
    try mount("items", "keychain=vault")
    let service = "\(keyhole.mountpoint)/keychain/generic/\(Stores.service)"
    try list("items", service)
    var next = Values()
    try calls("items", "\(service)/\(account(1))", "value", &next)
    try commands("items", path: "keychain/generic/\(Stores.service)/\(account(1))/value", &next)
    try keyhole.unmount()
  }

  private func account(_ index: Int) -> String { "ACCOUNT_\(index)" }

  /// Leaves it mounted.
  private func mount(_ store: String, _ options: String) throws(Failure) {
    var times = Samples()
    for round in 0..<5 {
      if round > 0 { try keyhole.unmount() }
      times.append([try seconds { () throws(Failure) in try keyhole.mount(options) }])
    }
    try add(store, "mount", times.median)
  }

  private func list(_ store: String, _ path: String) throws(Failure) {
    let list = Program(path: "/bin/ls", arguments: ["-l", path])
    let before = try keyhole.memoryAtRest()
    var times = Samples()
    for _ in 0..<(count > Self.manyEntries ? 1 : 5) {
      times.append([try seconds { () throws(Failure) in try list.run() }])
    }
    try add(store, "ls -l, an entry", times.median / Double(count))
    try add(store, Self.memoryOfEntry, Double(max(0, try keyhole.memoryAtRest() - before)) / Double(count))
  }

  /// Closes the folder again, so that the mount can be unmounted.
  private func calls(_ store: String, _ path: String, _ file: String, _ next: inout Values) throws(Failure) {
    let folder = try Folder(path)
    let plan = Plan(rounds: rounds, batch: 10)
    var (reads, writes) = (Samples(), Samples())
    for _ in 0..<plan.rounds {
      reads.append(try plan.measure { () throws(Failure) in try folder.read(file) })
      writes.append(try plan.measure { () throws(Failure) in try folder.write(next(), to: file) })
    }
    try add(store, "open+read+close", reads.median)
    try add(store, "open+write+close", writes.median)
  }

  private func commands(_ store: String, path: String, _ next: inout Values) throws(Failure) {
    var (gets, sets) = (Samples(), Samples())
    for _ in 0..<10 {
      let get = Program(path: keyhole.command, arguments: ["get", path])
      gets.append([try seconds { () throws(Failure) in try get.run() }])
      // Standard input is the only way for a secret.
      let set = Program(
        path: "/bin/sh", arguments: ["-c", "echo \"$2\" | \"$0\" set \"$1\"", keyhole.command, path, next()])
      sets.append([try seconds { () throws(Failure) in try set.run() }])
    }
    try add(store, "keyhole get", gets.median)
    try add(store, "keyhole set", sets.median)
  }

  private func add(_ store: String, _ operation: String, _ seconds: Double) throws(Failure) {
    let line = "\(store)\t\(operation)\t\(count)\t\(seconds)\n"
    try appendText(line, to: output)
    print(line, terminator: "")
  }
}

/// Values that differ: one that is equal to the stored one is no change.
struct Values {
  private var count = 0

  mutating func callAsFunction() -> String {
    count += 1
    return "Hello \(count)\n"
  }
}
