/// Other programs and file systems that show a value, measured in turns with each other.
struct Peers {
  private let programs: [(name: String, words: [String])]
  private let files: [(name: String, path: String)]
  private let rounds: Int

  init(_ arguments: Arguments) throws(Failure) {
    programs = try Self.lines(of: arguments.required("programs")).map { line in
      (line.name, line.rest.split(separator: " ").map(String.init))
    }
    files = try Self.lines(of: arguments.required("files")).map { ($0.name, $0.rest) }
    rounds = try arguments.number("rounds", default: 40)
  }

  func measure() throws(Failure) -> Table {
    var table = Table()
    var reads: [(name: String, Operation)] = []
    for file in files {
      guard let slash = file.path.lastIndex(of: "/") else { throw Failure("\(file.path): no whole path") }
      let folder = try Folder(String(file.path[..<slash]))
      let name = String(file.path[slash...].dropFirst())
      reads.append((file.name, { () throws(Failure) in try folder.read(name) }))
    }
    try append("open+read+close", reads, Plan(rounds: rounds, batch: 200), to: &table)
    let runs: [(name: String, Operation)] = programs.map { program in
      let command = Program(path: program.words[0], arguments: Array(program.words.dropFirst()))
      return (program.name, { () throws(Failure) in try command.run() })
    }
    try append("a process", runs, Plan(rounds: rounds, batch: 2), to: &table)
    return table
  }

  private func append(
    _ what: String, _ sides: [(name: String, Operation)], _ plan: Plan, to table: inout Table
  ) throws(Failure) {
    var samples = sides.map { _ in Samples() }
    for round in 0...plan.rounds {
      for (index, side) in sides.enumerated() {
        let batch = try plan.measure(side.1)
        // The first batch of each only warms up.
        if round > 0 { samples[index].append(batch) }
      }
    }
    for (side, samples) in zip(sides, samples) {
      table.append(Row("\(what): \(side.name)", ours: samples))
    }
  }

  private static func lines(of path: String) throws(Failure) -> [(name: String, rest: String)] {
    try text(of: path).split(separator: "\n").map { line in
      let fields = line.split(separator: "\t", maxSplits: 1)
      return (String(fields[0]), fields.count > 1 ? String(fields[1]) : "")
    }
  }
}
