import Glibc

/// Two versions of Keyhole, each with a mount and stores of its own, measured in turns.
struct Versions {
  /// A row is missed where the value is above this many times the other version's. Two runs of one version differ by less.
  private static let tolerance = 1.1

  var ours: Keyhole
  var other: Keyhole
  /// The other version's name in the table.
  var name: String
  var processor: Processors
  var processors: Processors
  var rounds: Int

  func run() throws(Failure) -> Table {
    var table = Table()
    try measureMemory(into: &table)
    let processes = [Int(getpid()), try ours.processIdentifier(), try other.processIdentifier()]
    try Processors.pin(processes, to: processor, and: processors) { () throws(Failure) in
      try measureReading(into: &table)
      try measureWriting(into: &table)
    }
    try measureCommands(into: &table)
    return table
  }

  /// Leaves both mounted.
  private func measureMemory(into table: inout Table) throws(Failure) {
    let plan = Plan(rounds: max(3, rounds / 4), batch: 1)
    try append("mount, both stores full", plan, into: &table) { keyhole in
      { () throws(Failure) in
        try keyhole.unmount()
        try keyhole.mount()
      }
    }
    try appendMemory("resident after ls -l, full vault", into: &table)
    for keyhole in [ours, other] {
      try keyhole.unmount()
      try keyhole.mount("keychain=none")
    }
    try appendMemory("resident after ls -l, no keychain", into: &table)
    for keyhole in [ours, other] {
      try keyhole.unmount()
      try keyhole.mount()
    }
  }

  private func appendMemory(_ what: String, into table: inout Table) throws(Failure) {
    for keyhole in [ours, other] { try list(keyhole)() }
    table.append(
      Row(
        what, bytes: try ours.residentMemory(), reference: (name, try other.residentMemory()),
        target: Self.tolerance))
  }

  private func measureReading(into table: inout Table) throws(Failure) {
    let plan = Plan(rounds: rounds, batch: 200)
    let key = Stores.key(1)
    try append("stat", Plan(rounds: rounds, batch: 200, calls: 10), into: &table) { keyhole throws(Failure) in
      try inSuite(Stores.many, keyhole) { folder throws(Failure) in try folder.stat(key) }
    }
    try append("open+read+close, setting", plan, into: &table) { keyhole throws(Failure) in
      try inSuite(Stores.many, keyhole) { folder throws(Failure) in try folder.read(key) }
    }
    try append("open+read+close, secret", plan, into: &table) { keyhole throws(Failure) in
      try inItem(keyhole) { folder throws(Failure) in try folder.read("value") }
    }
    try append("getxattr, setting", plan, into: &table) { keyhole throws(Failure) in
      let file = try Folder(Stores.suite(Stores.many, in: keyhole.mountpoint)).file(key)
      return { () throws(Failure) in try file.attribute("user.keyhole.type") }
    }
    try append("getxattr, secret", plan, into: &table) { keyhole throws(Failure) in
      let file = try Folder(Stores.item(in: keyhole.mountpoint)).file("value")
      return { () throws(Failure) in try file.attribute("user.service") }
    }
    try append("ls -l, every key", Plan(rounds: max(3, rounds / 4), batch: 1), into: &table, list)
  }

  private func measureWriting(into table: inout Table) throws(Failure) {
    let plan = Plan(rounds: rounds, batch: 20)
    let key = Stores.key(1)
    // A value that is equal to the stored one is no change, so each differs from the one before.
    var count = 0
    func next() -> String {
      count += 1
      return "Hello \(count)\n"
    }
    try append("open+write+close, suite of 10", plan, into: &table) { keyhole throws(Failure) in
      try inSuite(Stores.few, keyhole) { folder throws(Failure) in try folder.write(next(), to: key) }
    }
    try append("echo, suite of 1,000", plan, into: &table) { keyhole throws(Failure) in
      try inSuite(Stores.thousand, keyhole) { folder throws(Failure) in try folder.echo(next(), to: key) }
    }
    try append("open+write+close, secret", plan, into: &table) { keyhole throws(Failure) in
      try inItem(keyhole) { folder throws(Failure) in try folder.write(next(), to: "value") }
    }
  }

  private func measureCommands(into table: inout Table) throws(Failure) {
    let plan = Plan(rounds: rounds, batch: 5)
    let setting = "defaults/\(Stores.few)/\(Stores.key(2))"
    let secret = "keychain/generic/\(Stores.service)/\(Stores.account(1))/value"
    for (what, path) in [("keyhole get, setting", setting), ("keyhole get, secret", secret)] {
      try append(what, plan, into: &table) { keyhole in
        { () throws(Failure) in try Program(path: keyhole.command, arguments: ["get", path]).run() }
      }
    }
  }
}

extension Versions {
  private func inSuite(
    _ name: String, _ keyhole: Keyhole, _ body: @escaping (borrowing Folder) throws(Failure) -> Void
  ) throws(Failure) -> Operation {
    let folder = try Folder(Stores.suite(name, in: keyhole.mountpoint))
    return { () throws(Failure) in try body(folder) }
  }

  private func inItem(
    _ keyhole: Keyhole, _ body: @escaping (borrowing Folder) throws(Failure) -> Void
  ) throws(Failure) -> Operation {
    let folder = try Folder(Stores.item(in: keyhole.mountpoint))
    return { () throws(Failure) in try body(folder) }
  }

  private func list(_ keyhole: Keyhole) -> Operation {
    let path = Stores.suite(Stores.many, in: keyhole.mountpoint)
    return { () throws(Failure) in try Program(path: "/bin/ls", arguments: ["-l", path]).run() }
  }

  private func append(
    _ what: String, _ plan: Plan, into table: inout Table,
    _ operation: (Keyhole) throws(Failure) -> Operation
  ) throws(Failure) {
    try table.append(
      what, target: .ratio(Self.tolerance), plan: plan, ours: operation(ours), against: name,
      operation(other))
  }
}
