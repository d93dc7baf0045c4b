import Glibc

/// A store with so many settings in so many suites.
///
/// The store has to be empty of suites of the benchmark, and the mount has to be there and unlocked. Lines
/// `cluster<tab>OPERATION<tab>COUNT<tab>SECONDS` are added to a file; of memory they have bytes.
struct ClusterGrowth {
  private let keyhole: Keyhole
  private let suites: Int
  private let keys: Int
  private let rounds: Int
  private let options: String
  private let passphrase: String
  private let output: String

  init(_ arguments: Arguments) throws(Failure) {
    keyhole = Keyhole(
      command: try arguments.required("keyhole"), mountpoint: try arguments.required("ours"),
      scratch: try arguments.required("scratch"))
    suites = try arguments.number("suites", default: 10)
    keys = try arguments.number("keys", default: 100)
    rounds = try arguments.number("rounds", default: 40)
    options = try arguments.required("options")
    passphrase = try arguments.required("passphrase")
    output = try arguments.required("output")
  }

  func measure() throws(Failure) {
    let isLarge = suites * keys >= Self.fewestForImport
    let filling = try seconds { () throws(Failure) in
      if isLarge { try fillByImport() } else { try fill() }
    }
    let operation = isLarge ? "storing a setting, in an import of all" : "storing a setting"
    try add(operation, filling / Double(suites * keys))
    // The first reading of all of it is another process's.
    try keyhole.unmount()
    try add("mount", seconds { () throws(Failure) in try keyhole.mount(options) })
    // Without the key nothing is read yet.
    let before = try keyhole.residentMemory()
    try add("keyhole unlock, with the passphrase's key", seconds { () throws(Failure) in try unlock() })
    let first = try seconds { () throws(Failure) in try Folder(suite(suites - 1)).read(Stores.key(0)) }
    try add("the first setting of the last suite", first)
    let folder = try Folder(suite(0))
    let plan = Plan(rounds: rounds, batch: 10)
    var (reads, writes, value) = (Samples(), Samples(), Values())
    for _ in 0..<plan.rounds {
      reads.append(try plan.measure { () throws(Failure) in try folder.read(Stores.key(1)) })
      writes.append(try plan.measure { () throws(Failure) in try folder.write(value(), to: Stores.key(1)) })
    }
    try add("open+read+close", reads.median)
    try add("open+write+close", writes.median)
    try measureMemory(since: before)
  }

  /// Of few settings, most of the memory would be that of the process itself.
  private static let fewestForMemory = 50_000

  private func measureMemory(since before: Int) throws(Failure) {
    guard suites * keys >= Self.fewestForMemory else { return }
    for index in 0..<suites {
      let suite = try Folder(suite(index))
      for key in 0..<keys { try suite.read(Stores.key(key)) }
    }
    try add(
      "memory of a setting that was read, in bytes",
      Double(max(0, try keyhole.residentMemory() - before)) / Double(suites * keys))
  }

  private func suite(_ index: Int) -> String {
    Stores.suite("benchmark.suite-\(index)", in: keyhole.mountpoint)
  }

  private func fill() throws(Failure) {
    for index in 0..<suites {
      try makeFolder(suite(index))
      let folder = try Folder(suite(index))
      for key in 0..<keys { try folder.write("\(Stores.value) \(key)\n", to: Stores.key(key)) }
    }
  }

  /// One by one they would take most of an hour.
  private static let fewestForImport = 500_000

  private func fillByImport() throws(Failure) {
    let path = keyhole.scratch + "/settings.json"
    try appendText("{\"keyhole\": 1, \"defaults\": {\n", to: path)
    for index in 0..<suites {
      let settings = (0..<keys).map {
        "\"\(Stores.key($0))\": {\"type\": \"string\", \"value\": \"\(Stores.value) \($0)\"}"
      }
      let end = index == suites - 1 ? "}}\n" : "},\n"
      try appendText("\"benchmark.suite-\(index)\": {\(settings.joined(separator: ", "))\(end)", to: path)
    }
    try appendText(", \"keychain\": []}\n", to: path)
    try Program(path: keyhole.command, arguments: ["import", "--quiet", path]).run()
  }

  private func unlock() throws(Failure) {
    try Program(
      path: "/bin/sh", arguments: ["-c", "exec \"$0\" unlock <\"$1\"", keyhole.command, passphrase]
    ).run()
  }

  private func add(_ operation: String, _ seconds: Double) throws(Failure) {
    let line = "cluster\t\(operation)\t\(suites * keys)\t\(seconds)\n"
    try appendText(line, to: output)
    print(line, terminator: "")
  }
}
