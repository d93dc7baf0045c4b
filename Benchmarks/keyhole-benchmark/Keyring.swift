import Glibc

/// A Secret Service through the mount, beside secret-tool. The session bus of the environment is taken for
/// this program's own, and has no service yet.
struct Keyring {
  let keyhole: Keyhole
  /// Where gnome-keyring-daemon has its keyrings: `$XDG_DATA_HOME`.
  let data: String
  /// The tests' service, a script of Python's.
  let standIn: String
  /// How many are listed.
  let items: Int
  let rounds: Int

  private static let tool = "secret-tool"
  private var folder: String { "\(keyhole.mountpoint)/keychain/generic/\(Stores.service)" }
  private var item: String { "\(folder)/\(Stores.account(1))" }
  private var lookup: Program {
    let words = ["lookup", "service", Stores.service, "account", Stores.account(1)]
    return Program(path: "/usr/bin/secret-tool", arguments: words)
  }

  func measure() throws(Failure) -> Table {
    var table = Table()
    try measureListing(into: &table)
    try startKeyring()
    try keyhole.mount("keychain=secret-service")
    try measureReading(into: &table)
    try measureCalls(into: &table)
    try keyhole.unmount()
    return table
  }

  private func startKeyring() throws(Failure) {
    try Stores.writeKeyring(to: "\(data)/keyrings", items: min(items, 1_000))
    try Program(
      path: "/bin/sh",
      arguments: ["-c", "printf pw | gnome-keyring-daemon --unlock --components=secrets"]
    ).run()
    // The first call unlocks a keyring without a password.
    try lookup.run()
  }

  /// The first calls of a mount to the service. Not to gnome-keyring: with 5,000 items it takes longer
  /// than the 25 seconds after which secret-tool gives up.
  private func measureListing(into table: inout Table) throws(Failure) {
    let (output, count) = ("\(keyhole.scratch)/stand-in", items)
    let service = try Program(
      path: "/usr/bin/python3", arguments: [standIn, "plain", String(count)]
    ).start(output: output)
    defer {
      kill(service.process, SIGKILL)
      try? service.wait()
    }
    try wait(for: "ready", in: output) { $0[...] }
    // It prints what it finds to both.
    let search = Program(path: "/bin/sh", arguments: ["-c", "exec secret-tool search --all service S 2>&1"])
    let list = Program(path: "/bin/ls", arguments: ["-l", "\(keyhole.mountpoint)/keychain/generic/S"])
    let theirs = try traffic { () throws(Failure) in try search.run() }
    let ours = try traffic { () throws(Failure) in
      try keyhole.mount("keychain=secret-service,plain-session")
      try list.run()
    }
    try keyhole.unmount()

    let what = "listing \(items) items"
    table.append(
      Row("\(what), calls", count: ours.calls.count, reference: (Self.tool, theirs.calls.count), target: 3))
    table.append(Row("\(what), bytes", count: ours.bytes, reference: (Self.tool, theirs.bytes), target: 3))
    table.append(Row("\(what), calls for sizes", count: ours.calls(of: "GetSecrets"), target: items / 64 + 1))
  }

  private func measureReading(into table: inout Table) throws(Failure) {
    let folder = try Folder(item)
    let cat = Program(path: "/bin/cat", arguments: ["\(item)/value"])
    let (lookup, plan) = (lookup, Plan(rounds: rounds, batch: 10))
    let reference: Operation = { () throws(Failure) in try lookup.run() }
    try table.append(
      "open+read+close, keyring", target: .ratio(0.1), plan: plan,
      ours: { () throws(Failure) in try folder.read("value") }, against: Self.tool, reference)
    try table.append(
      "cat, a process too", plan: plan, ours: { () throws(Failure) in try cat.run() }, against: Self.tool,
      reference)
  }

  private func measureCalls(into table: inout Table) throws(Failure) {
    let folder = try Folder(item)
    let read = try traffic { () throws(Failure) in try folder.read("value") }
    table.append(Row("calls of a read, keyring", count: read.calls.count, target: 1))
    let file = try folder.file("value")
    let look = try traffic { () throws(Failure) in
      try file.attribute("user.service")
      try folder.stat("value")
      try Program(path: "/bin/ls", arguments: ["-lR", self.folder]).run()
    }
    table.append(Row("calls of getxattr, stat and ls -lR", count: look.calls.count, target: 0))
  }

  private func traffic(_ operation: Operation) throws(Failure) -> Traffic {
    try Traffic(of: operation, scratch: keyhole.scratch)
  }
}
