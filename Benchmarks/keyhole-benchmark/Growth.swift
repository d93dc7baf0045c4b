import Glibc

/// Measures operations in suites of so many keys, and in a vault of so many items.
///
/// The cost of one key is measured in turns for suites of several sizes: one after the other they would be compared in different
/// states of the machine. The stores of the home have to be empty. Lines `STORE<tab>OPERATION<tab>COUNT<tab>SECONDS` are added to a file; of a
/// listing the seconds are those for one entry, and of `memoryOfEntry` they are bytes.
struct Growth {
  private static let suite = "benchmark.growth"
  private static let memoryOfEntry = "memory, a listed entry"
  /// Of more entries one listing is measured, not the median of five.
  private static let manyEntries = 100_000

  private let keyhole: Keyhole
  private let config: String
  private let counts: [Int]
  private let rounds: Int
  private let output: String
  /// `items`, `all`, or `turns`: suites of all counts in one mount.
  private let stores: String

  init(_ arguments: Arguments) throws(Failure) {
    keyhole = Keyhole(
      command: try arguments.required("keyhole"), mountpoint: try arguments.required("ours"),
      scratch: try arguments.required("scratch"))
    config = try arguments.required("config")
    counts = try (arguments["count"] ?? "1000").split(separator: " ").map { (text) throws(Failure) in
      guard let count = Int(text), count > 0 else { throw Failure("--count: not a number above 0: \(text)") }
      return count
    }
    rounds = try arguments.number("rounds", default: 40)
    output = try arguments.required("output")
    stores = arguments["stores"] ?? "all"
  }

  func measure() throws(Failure) {
    if stores == "turns" { return try measureKeysInTurns() }
    for count in counts {
      if stores != "items" { try measureKeys(count) }
      try measureItems(count)
    }
  }

  private func measureKeys(_ count: Int) throws(Failure) {
    try writeSuite(count)
    try mount("keys", count, "keychain=none")
    try list("keys", count, suitePath(count))
    try keyhole.unmount()
  }

  private func measureKeysInTurns() throws(Failure) {
    for count in counts { try writeSuite(count) }
    try keyhole.mount("keychain=none")
    for count in counts { try Program(path: "/bin/ls", arguments: ["-l", suitePath(count)]).run() }
    let places = counts.map { count in
      Place(
        store: "keys", count: count, folder: suitePath(count), file: Stores.key(1),
        path: "defaults/\(suite(count))/\(Stores.key(1))")
    }
    try measure(places)
    try keyhole.unmount()
  }

  private func suite(_ count: Int) -> String { "\(Self.suite).\(count)" }

  private func suitePath(_ count: Int) -> String { "\(keyhole.mountpoint)/defaults/\(suite(count))" }

  private func writeSuite(_ count: Int) throws(Failure) {
    try makeFolder(config)
    try Folder(config).write(Stores.propertyList(keys: count), to: suite(count) + ".plist")
  }

  private func measureItems(_ count: Int) throws(Failure) {
    let file = keyhole.scratch + "/items.env"
    var text = ""
    for index in 0..<count { text += "\(account(index))='\(Stores.value) \(index)'\n" }
    try appendText(text, to: file)
    let filling = try seconds { () throws(Failure) in
      try Program(
        path: keyhole.command, arguments: ["import", "--to", "keychain/generic/\(Stores.service)", file]
      ).run()
    }
    try add("items", "import, an item", count, filling / Double(count))
    try mount("items", count, "keychain=vault")
    let service = "keychain/generic/\(Stores.service)"
    let folder = "\(keyhole.mountpoint)/\(service)"
    try list("items", count, folder)
    try measure([
      Place(
        store: "items", count: count, folder: "\(folder)/\(account(1))", file: "value",
        path: "\(service)/\(account(1))/value")
    ])
    try keyhole.unmount()
  }

  private func account(_ index: Int) -> String { "ACCOUNT_\(index)" }

  /// Leaves it mounted.
  private func mount(_ store: String, _ count: Int, _ options: String) throws(Failure) {
    var times = Samples()
    for round in 0..<5 {
      if round > 0 { try keyhole.unmount() }
      times.append([try seconds { () throws(Failure) in try keyhole.mount(options) }])
    }
    try add(store, "mount", count, times.median)
  }

  private func list(_ store: String, _ count: Int, _ path: String) throws(Failure) {
    let list = Program(path: "/bin/ls", arguments: ["-l", path])
    let before = try keyhole.memoryAtRest()
    var times = Samples()
    for _ in 0..<(count > Self.manyEntries ? 1 : 5) {
      times.append([try seconds { () throws(Failure) in try list.run() }])
    }
    try add(store, "ls -l, an entry", count, times.median / Double(count))
    let added = Double(max(0, try keyhole.memoryAtRest() - before))
    try add(store, Self.memoryOfEntry, count, added / Double(count))
  }

  /// One key or item, in a suite or vault of so many.
  private struct Place {
    var store: String
    var count: Int
    /// In the mount.
    var folder: String
    var file: String
    /// For commands.
    var path: String
  }

  /// Measures calls and commands, of all places in turns.
  private func measure(_ places: [Place]) throws(Failure) {
    var next = Values()
    try calls(places, &next)
    try commands(places, &next)
  }

  /// No folder stays open, so that the mount can be unmounted.
  private func calls(_ places: [Place], _ next: inout Values) throws(Failure) {
    let plan = Plan(rounds: rounds, batch: 10)
    var (reads, writes) = (places.map { _ in Samples() }, places.map { _ in Samples() })
    for _ in 0..<plan.rounds {
      for (index, place) in places.enumerated() {
        let folder = try Folder(place.folder)
        reads[index].append(try plan.measure { () throws(Failure) in try folder.read(place.file) })
        writes[index].append(
          try plan.measure { () throws(Failure) in try folder.write(next(), to: place.file) })
      }
    }
    try add("open+read+close", places, reads)
    try add("open+write+close", places, writes)
  }

  private func commands(_ places: [Place], _ next: inout Values) throws(Failure) {
    var (gets, sets) = (places.map { _ in Samples() }, places.map { _ in Samples() })
    for _ in 0..<rounds {
      for (index, place) in places.enumerated() {
        let get = Program(path: keyhole.command, arguments: ["get", place.path])
        gets[index].append([try seconds { () throws(Failure) in try get.run() }])
        // Standard input is the only way for a secret.
        let script = "echo \"$2\" | \"$0\" set \"$1\""
        let set = Program(
          path: "/bin/sh", arguments: ["-c", script, keyhole.command, place.path, next()])
        sets[index].append([try seconds { () throws(Failure) in try set.run() }])
      }
    }
    try add("keyhole get", places, gets)
    try add("keyhole set", places, sets)
  }

  private func add(_ operation: String, _ places: [Place], _ samples: [Samples]) throws(Failure) {
    for (place, samples) in zip(places, samples) {
      try add(place.store, operation, place.count, samples.median)
    }
  }

  private func add(_ store: String, _ operation: String, _ count: Int, _ seconds: Double) throws(Failure) {
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
