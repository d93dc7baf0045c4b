import Glibc

/// Many processes at once on one secret and on the keys of one suite, beside one process.
struct Storm {
  private static let many = 64

  private let mountpoint: String
  private let seconds: Int

  init(_ arguments: Arguments) throws(Failure) {
    mountpoint = try arguments.required("ours")
    seconds = try arguments.number("seconds", default: 3)
  }

  func measure() throws(Failure) {
    let header = [
      "processes", "calls a second", "of one process", "p99", "p99 of the slowest", "fewest of one process",
    ]
    print("| " + header.joined(separator: " | ") + " |")
    print("|---|---:|---:|---:|---:|---:|")
    let item = Stores.item(in: mountpoint)
    let suite = Stores.suite(Stores.thousand, in: mountpoint)
    for count in [1, Self.many] {
      try run("reading one secret", count, mode: "read") { _ in (item, "value") }
    }
    for count in [1, Self.many] {
      try run("writing, each a key of one suite", count, mode: "write") { (suite, Stores.key($0)) }
    }
  }

  private func run(
    _ what: String, _ count: Int, mode: String, file: (Int) -> (folder: String, name: String)
  ) throws(Failure) {
    let outputs = (0..<count).map { "/dev/shm/kh-storm.\(getpid()).\($0)" }
    defer { for output in outputs { unsafe unlink(output) } }
    // Late enough for all to be there.
    let start = now() + 0.2 + Double(count) * 0.02
    var workers: [Program.Running] = []
    for (index, output) in outputs.enumerated() {
      let (folder, name) = file(index)
      let worker = Program(
        path: CommandLine.arguments[0],
        arguments: [
          "worker", "--folder", folder, "--file", name, "--mode", mode, "--number", String(index + 1),
          "--start", String(start), "--seconds", String(seconds),
        ])
      workers.append(try worker.start(output: output))
    }
    for worker in workers { try worker.wait() }
    var (all, worst, least) = (Samples(), 0.0, Int.max)
    for output in outputs {
      let times = Samples(try text(of: output).split(separator: "\n").compactMap { Double($0) })
      all.append(times.seconds)
      worst = max(worst, times.p99)
      least = min(least, times.seconds.count)
    }
    let rate = Double(all.seconds.count) / Double(seconds)
    let mean = Double(all.seconds.count) / Double(count)
    let cells = [
      "\(count) \(what)", fixed(rate, digits: 0), fixed(rate / Double(count), digits: 0), time(all.p99),
      time(worst), fixed(100 * Double(least) / mean, digits: 0) + " % of the mean",
    ]
    print("| " + cells.joined(separator: " | ") + " |")
  }
}

/// One of the processes of a storm: prints the seconds of each call.
struct Worker {
  private let folder: String
  private let file: String
  private let writes: Bool
  private let number: Int
  private let start: Double
  private let seconds: Int

  init(_ arguments: Arguments) throws(Failure) {
    folder = try arguments.required("folder")
    file = try arguments.required("file")
    writes = try arguments.required("mode") == "write"
    number = try arguments.number("number", default: 1)
    guard let start = Double(try arguments.required("start")) else { throw Failure("--start: no number") }
    self.start = start
    seconds = try arguments.number("seconds", default: 3)
  }

  func run() throws(Failure) {
    let folder = try Folder(folder)
    var times: [Double] = []
    usleep(UInt32(max(0, start - now()) * 1e6))
    var began = now()
    while began < start + Double(seconds) {
      if writes {
        try folder.write("\(number) \(times.count)\n", to: file)
      } else {
        try folder.read(file)
      }
      let ended = now()
      times.append(ended - began)
      began = ended
    }
    print(times.map { String($0) }.joined(separator: "\n"))
  }
}
