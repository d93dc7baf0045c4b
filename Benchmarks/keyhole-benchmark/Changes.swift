import Glibc

/// The delay until a program that watches the mount is notified of another's change, and the cost of waiting.
struct Changes {
  let keyhole: Keyhole
  /// Where the property lists are.
  let config: String

  func measure(rounds: Int, seconds quiet: Int, into table: inout Table) throws(Failure) {
    let folder = try Folder(config)
    let watch = try FileWatch("\(keyhole.mountpoint)/defaults/\(Stores.heard)")
    var times = Samples()
    for round in 1...rounds * 10 + 10 {
      try folder.replace(Stores.heard + ".plist", with: Stores.propertyList(keys: 1, value: "\(round)"))
      let began = now()
      try watch.wait()
      // The first ones find programs that are not in memory yet.
      if round > 10 { times.append([now() - began]) }
    }
    table.append(Row("outside change to inotify event", ours: times, target: .seconds(0.002, p99: 0.02)))
    let wakeups = try wakeups(in: quiet, after: rounds > 10 ? 150 : 10)
    table.append(Row("wake-ups in \(quiet) idle seconds", count: wakeups, target: 0))
  }

  /// Threads that have nothing to do any more end after some seconds. The files that were looked at before are pruned from
  /// the kernel's cache a minute and two minutes later, by timers that those looks have set: a quick run does not wait for them.
  private func wakeups(in seconds: Int, after settling: UInt32) throws(Failure) -> Int {
    let process = try keyhole.processIdentifier()
    Output.error("waiting \(settling) seconds until nothing is left to do, and \(seconds) more")
    sleep(settling)
    let before = try keyhole.sleeps(of: process)
    sleep(UInt32(seconds))
    return try keyhole.sleeps(of: process).reduce(0) { $0 + $1.value - (before[$1.key] ?? 0) }
  }
}

/// inotify(7) on the files of one folder.
struct FileWatch: ~Copyable {
  private let descriptor: Int32

  init(_ path: String) throws(Failure) {
    descriptor = inotify_init1(Int32(IN_CLOEXEC))
    guard descriptor >= 0, unsafe inotify_add_watch(descriptor, path, UInt32(IN_CLOSE_WRITE)) >= 0 else {
      throw Failure.system(path)
    }
  }

  deinit { close(descriptor) }

  /// Returns when a file has been changed since the last call.
  func wait() throws(Failure) {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    guard unsafe poll(&entry, 1, 10_000) == 1 else { throw Failure("no event within 10 seconds") }
    var bytes = [UInt8](repeating: 0, count: 4096)
    _ = unsafe read(descriptor, &bytes, bytes.count)
  }
}
