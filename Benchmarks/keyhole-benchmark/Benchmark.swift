import Glibc

/// Measures Keyhole beside libfuse's own C examples. `mount-helpers/benchmark` sets everything up.
@main
struct Benchmark {
  static let usage = """
    usage: keyhole-benchmark stores --config FOLDER --tmpfs FOLDER [--keys N]
           keyhole-benchmark items --ours MOUNT [--items N]
           keyhole-benchmark keyring --keyhole COMMAND --ours MOUNT --scratch FOLDER --data FOLDER
                                     --stand-in SCRIPT [--items N] [--rounds N] [--check yes]
           keyhole-benchmark run [--keyhole COMMAND --scratch FOLDER] [--ours MOUNT] [--hello MOUNT]
                                 [--hello-name WORD] [--passthrough MOUNT] [--tmpfs FOLDER] [--config FOLDER]
                                 [--rounds N] [--operations N] [--check yes]
    What is not named is left out of the table.
           keyhole-benchmark versions --keyhole COMMAND --ours MOUNT --scratch FOLDER
                                      --other COMMAND --theirs MOUNT --other-scratch FOLDER --name WORD
                                      --processor N --processors LIST [--rounds N] [--check yes]
           keyhole-benchmark growth --keyhole COMMAND --ours MOUNT --scratch FOLDER --config FOLDER
                                    --count N --rounds N --output FILE [--stores keys|items]
           keyhole-benchmark storm --ours MOUNT [--seconds N]
           keyhole-benchmark cluster --ours MOUNT --theirs MOUNT --local MOUNT --endpoint HOST:PORT [--rounds N]
           keyhole-benchmark cluster-growth --keyhole COMMAND --ours MOUNT --scratch FOLDER --suites N --keys N
                                    --options OPTIONS --passphrase FILE --output FILE [--rounds N]
           keyhole-benchmark watchers --endpoint HOST:PORT --servers PID,… --count N --output FILE [--changes N]
           keyhole-benchmark peers --programs FILE --files FILE [--rounds N]
    A FILE of programs or files has lines NAME<tab>COMMAND or NAME<tab>PATH.
    With --distributions FILE, `run`, `keyring` and `peers` add the percentiles of each row to it.
    """

  static func main() {
    do {
      let arguments = try Arguments(CommandLine.arguments.dropFirst())
      try run(arguments)
    } catch {
      Output.error("keyhole-benchmark: \(error)")
      exit(1)
    }
  }

  private static func run(_ arguments: Arguments) throws(Failure) {
    switch arguments.command {
    case "stores":
      let keys = try arguments.number("keys", default: 10_000)
      try Stores.writeSuites(to: arguments.required("config"), keys: keys)
      try Stores.writeFiles(to: arguments.required("tmpfs"), keys: keys)
    case "items":
      try Stores.writeItems(to: arguments.required("ours"), items: arguments.number("items", default: 10_000))
    case "keyring":
      try measureKeyring(arguments)
    case "run":
      try compare(arguments)
    case "versions":
      try compareVersions(arguments)
    case "growth":
      try Growth(arguments).measure()
    case "storm":
      try Storm(arguments).measure()
    case "worker":
      try Worker(arguments).run()
    case "cluster":
      try finish(ClusterComparison(arguments).measure(), arguments)
    case "cluster-change":
      try finish(ClusterChange(arguments).measure(), arguments)
    case "cluster-growth":
      try ClusterGrowth(arguments).measure()
    case "hold":
      try ClusterWatchers.hold(arguments)
    case "watchers":
      try ClusterWatchers(arguments).measure()
    case "peers":
      try finish(Peers(arguments).measure(), arguments)
    default:
      throw Failure(usage)
    }
  }

  private static func compare(_ arguments: Arguments) throws(Failure) {
    var keyhole: Keyhole?
    if let command = arguments["keyhole"] {
      keyhole = Keyhole(
        command: command, mountpoint: try arguments.required("ours"),
        scratch: try arguments.required("scratch"))
    }
    let table = try Comparison(
      keyhole: keyhole, ours: arguments["ours"], hello: arguments["hello"],
      helloWithAttributes: arguments["hello-name"] ?? "hello_ll",
      passthrough: arguments["passthrough"], tmpfs: arguments["tmpfs"], config: arguments["config"],
      processor: arguments["processor"].map(Processors.init),
      processors: arguments["processors"].map(Processors.init),
      rounds: arguments.number("rounds", default: 40),
      operations: arguments.number("operations", default: 100_000)
    ).run()
    try finish(table, arguments)
  }

  private static func compareVersions(_ arguments: Arguments) throws(Failure) {
    let table = try Versions(
      ours: Keyhole(
        command: arguments.required("keyhole"), mountpoint: arguments.required("ours"),
        scratch: arguments.required("scratch")),
      other: Keyhole(
        command: arguments.required("other"), mountpoint: arguments.required("theirs"),
        scratch: arguments.required("other-scratch")),
      name: arguments.required("name"),
      processor: Processors(list: arguments.required("processor")),
      processors: Processors(list: arguments.required("processors")),
      rounds: arguments.number("rounds", default: 40)
    ).run()
    try finish(table, arguments)
  }

  private static func measureKeyring(_ arguments: Arguments) throws(Failure) {
    let keyhole = Keyhole(
      command: try arguments.required("keyhole"), mountpoint: try arguments.required("ours"),
      scratch: try arguments.required("scratch"))
    let keyring = Keyring(
      keyhole: keyhole, data: try arguments.required("data"),
      standIn: try arguments.required("stand-in"),
      items: try arguments.number("items", default: 5_000),
      rounds: try arguments.number("rounds", default: 40))
    try finish(keyring.measure(), arguments)
  }

  private static func finish(_ table: Table, _ arguments: Arguments) throws(Failure) {
    table.print()
    if let path = arguments["distributions"] { try table.writeDistributions(to: path) }
    if table.missed > 0 { print("\n\(table.missed) target(s) not met") }
    if arguments["check"] != nil, table.missed > 0 { exit(1) }
  }
}

/// A word, then pairs of `--name value`.
struct Arguments {
  let command: String
  private var values: [String: String] = [:]

  init(_ words: ArraySlice<String>) throws(Failure) {
    command = words.first ?? ""
    var rest = words.dropFirst()
    while let name = rest.popFirst() {
      guard name.hasPrefix("--"), let value = rest.popFirst() else { throw Failure(Benchmark.usage) }
      values[String(name.dropFirst(2))] = value
    }
  }

  subscript(name: String) -> String? { values[name] }

  func required(_ name: String) throws(Failure) -> String {
    guard let value = values[name] else { throw Failure("--\(name) is missing") }
    return value
  }

  func number(_ name: String, default standard: Int) throws(Failure) -> Int {
    guard let value = values[name] else { return standard }
    guard let number = Int(value), number > 0 else { throw Failure("--\(name): not a number above 0") }
    return number
  }
}

enum Output {
  static func error(_ line: String) {
    var line = line + "\n"
    _ = line.withUTF8 { unsafe write(2, $0.baseAddress, $0.count) }
  }
}
