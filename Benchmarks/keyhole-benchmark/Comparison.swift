import Glibc

/// The mounts to compare. One that is not named is left out of the table.
struct Comparison {
  var keyhole: Keyhole?
  /// Any folder laid out like the mount, where there is no `keyhole` to ask.
  var ours: String?
  var hello: String?
  /// The name of hello_ll in the rows of getxattr: some versions need it added.
  var helloWithAttributes = "hello_ll"
  var passthrough: String?
  var tmpfs: String?
  /// The folder of the property lists that the mount shows.
  var config: String?
  /// The one that the references run on, and all that may be used; nil: wherever the scheduler likes.
  var processor: Processors?
  var processors: Processors?
  var rounds: Int
  var operations: Int

  func run() throws(Failure) -> Table {
    var table = Table()
    if let keyhole { try measureMount(keyhole, into: &table) }
    try onOneProcessor { () throws(Failure) in
      try measureReading(into: &table)
      try measureWriting(into: &table)
      try measureListing(into: &table)
    }
    if let keyhole { try measureGrowth(keyhole, into: &table) }
    if let keyhole, let config {
      try Changes(keyhole: keyhole, config: config).measure(rounds: rounds, seconds: 30, into: &table)
    }
    return table
  }

  /// Runs `body` with this program and the mount on one processor, where the script has put the references:
  /// waking a program on another one may cost five times what a file system does, and where the scheduler wakes
  /// them is its affair.
  private func onOneProcessor(_ body: () throws(Failure) -> Void) throws(Failure) {
    guard let processor, let processors else { return try body() }
    var processes = [Int(getpid())]
    if let keyhole { processes.append(try keyhole.processIdentifier()) }
    try Processors.pin(processes, to: processor, and: processors, body)
  }

  private func suite(_ name: String) -> String? { ours.map { Stores.suite(name, in: $0) } }
  private var item: String? { ours.map { Stores.item(in: $0) } }

  /// A folder that may not be there, as the operation that it makes possible.
  private func operation(
    _ path: String?, _ body: @escaping (borrowing Folder) throws(Failure) -> Void
  ) throws(Failure) -> Operation? {
    guard let path else { return nil }
    let folder = try Folder(path)
    return { () throws(Failure) in try body(folder) }
  }
}

// MARK: - The rows

extension Comparison {
  /// Leaves everything mounted and fresh, as the memory is measured first.
  private func measureMount(_ keyhole: Keyhole, into table: inout Table) throws(Failure) {
    var times = Samples()
    for _ in 0..<max(3, rounds / 4) {
      try keyhole.unmount()
      times.append([try seconds { () throws(Failure) in try keyhole.mount() }])
    }
    table.append(Row("mount, both stores full", ours: times, target: .seconds(0.1)))

    try keyhole.unmount()
    try keyhole.mount("keychain=none")
    table.append(Row("resident, fresh, no keychain", bytes: try keyhole.memoryAtRest(), target: 12 << 20))
    try list("\(keyhole.mountpoint)/defaults/\(Stores.many)")()
    table.append(
      Row("resident after ls -l, no keychain", bytes: try keyhole.memoryAtRest(), target: 12 << 20))
    try keyhole.unmount()
    try keyhole.mount()
    table.append(
      Row("resident, fresh, both stores full", bytes: try keyhole.memoryAtRest(), target: 12 << 20))
    try list("\(keyhole.mountpoint)/defaults/\(Stores.many)")()
    try list("\(keyhole.mountpoint)/keychain/generic/\(Stores.service)")()
    table.append(Row("resident after ls -l of both", bytes: try keyhole.memoryAtRest(), target: 20 << 20))
  }

  private func measureReading(into table: inout Table) throws(Failure) {
    let key = Stores.key(1)
    let hello = try operation(hello) { folder throws(Failure) in try folder.read("hello") }
    let plan = Plan(rounds: rounds, batch: 200)

    try table.append(
      "stat", target: .ratio(1.1), plan: Plan(rounds: rounds, batch: 200, calls: 10),
      ours: operation(suite(Stores.many)) { folder throws(Failure) in try folder.stat(key) },
      against: "hello_ll", operation(self.hello) { folder throws(Failure) in try folder.stat("hello") })
    try table.append(
      "open+read+close, setting", target: .ratio(0.7), plan: plan,
      ours: operation(suite(Stores.many)) { folder throws(Failure) in try folder.read(key) },
      against: "hello_ll", hello)
    try table.append(
      "open+read+close, secret", target: .ratio(1.1), plan: plan,
      ours: operation(item) { folder throws(Failure) in try folder.read("value") },
      against: "hello_ll", hello)
    try table.append(
      "open+read+close, secret with a rule", target: .ratio(1.6), plan: plan,
      ours: operation(ruledItem()) { folder throws(Failure) in try folder.read("value") },
      against: "hello_ll", hello)

    let attribute = try attribute("hello_ll_getxattr_name", of: "hello", in: self.hello)
    try table.append(
      "getxattr, setting", target: .ratio(1.1), plan: plan,
      ours: self.attribute("user.keyhole.type", of: key, in: suite(Stores.many)),
      against: helloWithAttributes, attribute)
    try table.append(
      "getxattr, secret", target: .ratio(1.1), plan: plan,
      ours: self.attribute("user.service", of: "value", in: item),
      against: helloWithAttributes, attribute)
  }

  /// An item that has a rule, which allows this program to read it.
  private func ruledItem() throws(Failure) -> String? {
    guard let keyhole, let path = ours.map({ Stores.item(2, in: $0) }) else { return nil }
    try Program(path: keyhole.command, arguments: ["allow", CommandLine.arguments[0], path]).run()
    return path
  }

  private func attribute(
    _ attribute: String, of name: String, in path: String?
  ) throws(Failure) -> Operation? {
    guard let path else { return nil }
    let file = try Folder(path).file(name)
    return { () throws(Failure) in try file.attribute(attribute) }
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
    let write = try operation(passthrough) { folder throws(Failure) in
      try folder.write(next(), to: "written")
    }

    try table.append(
      "open+write+close, suite of 10", plan: plan,
      ours: operation(suite(Stores.few)) { folder throws(Failure) in try folder.write(next(), to: key) },
      against: "passthrough_ll", write)
    try table.append(
      "echo, suite of 1,000", target: .seconds(0.0005), plan: plan,
      ours: operation(suite(Stores.thousand)) { folder throws(Failure) in try folder.echo(next(), to: key) },
      against: "passthrough_ll",
      operation(passthrough) { folder throws(Failure) in try folder.echo(next(), to: "written") })
    try table.append(
      "open+write+close, secret", target: .ratio(2), plan: plan,
      ours: operation(item) { folder throws(Failure) in try folder.write(next(), to: "value") },
      against: "SQLite, durable", durableTransaction())
  }

  /// On the disk of the vault; nil: there is none.
  private func durableTransaction() throws(Failure) -> Operation? {
    guard let keyhole else { return nil }
    return try DurableTransaction(folder: keyhole.scratch).run
  }

  private func measureListing(into table: inout Table) throws(Failure) {
    try table.append(
      "ls -l, every key", target: .ratio(3), plan: Plan(rounds: max(3, rounds / 4), batch: 1),
      ours: suite(Stores.many).map(list), against: "tmpfs", tmpfs.map(list))
  }

  private func list(_ path: String) -> Operation {
    { () throws(Failure) in try Program(path: "/bin/ls", arguments: ["-l", path]).run() }
  }

  /// Reads and writes in turn; a secret is written each hundredth time, because that waits for the disk.
  private func measureGrowth(_ keyhole: Keyhole, into table: inout Table) throws(Failure) {
    guard let few = suite(Stores.few), let item else { return }
    let suite = try Folder(few)
    let secret = try Folder(item)
    func work(_ operations: Int) throws(Failure) {
      for index in 0..<operations / 4 {
        try suite.write("Hello \(index)\n", to: Stores.key(2))
        try suite.read(Stores.key(2))
        try suite.read(Stores.key(1))
        if index % 25 == 0 {
          try secret.write("Hello \(index)\n", to: "value")
        } else {
          try secret.read("value")
        }
      }
    }
    try work(operations / 10)
    let before = try keyhole.residentMemory()
    try work(operations)
    let growth = try keyhole.residentMemory() - before
    table.append(Row("growth over \(operations) reads and writes", bytes: max(0, growth), target: 1 << 20))
  }
}

extension Table {
  /// Measures the two sides in turns and adds what was found.
  mutating func append(
    _ what: String, target: Target? = nil, plan: Plan, ours: Operation?,
    against name: String, _ reference: Operation?
  ) throws(Failure) {
    let samples = try plan.run(ours: ours, reference: reference)
    append(Row(what, ours: samples.ours, reference: (name, samples.reference), target: target))
  }
}
