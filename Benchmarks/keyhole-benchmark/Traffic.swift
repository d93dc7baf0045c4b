import Glibc

/// The messages on the session bus meanwhile, as `dbus-monitor` reports them.
struct Traffic {
  /// All messages, of every sender.
  private(set) var bytes = 0
  /// The headers of all calls but those of the bus itself; they name their methods.
  private(set) var calls: [[UInt8]] = []

  init(of operation: Operation, scratch: String) throws(Failure) {
    let file = scratch + "/traffic"
    let monitor = try Program(path: "/usr/bin/dbus-monitor", arguments: ["--binary"]).start(output: file)
    defer {
      kill(monitor.process, SIGKILL)
      try? monitor.wait()
    }
    // From the moment when it has lost its name it hears everything.
    try wait(for: "NameLost", in: file) { $0.prefix(4096) }
    let start = try content(of: file).count
    try operation()
    try Program(path: "/usr/bin/dbus-send", arguments: ["--type=signal", "/", "keyhole.Mark.End"]).run()
    try wait(for: "keyhole.Mark", in: file) { $0.suffix(4096) }
    try read(content(of: file).dropFirst(start))
  }

  func calls(of method: String) -> Int {
    calls.count { $0.contains(method.utf8) }
  }

  /// Messages as the D-Bus specification lays them out, one behind the other.
  private mutating func read(_ messages: ArraySlice<UInt8>) throws(Failure) {
    var rest = messages
    while rest.count >= 16 {
      guard rest.first == UInt8(ascii: "l") else { throw Failure("dbus-monitor: no message begins here") }
      let header = 16 + rest.number(at: 12)
      let length = (header + 7) / 8 * 8 + rest.number(at: 4)
      guard rest.count >= length else { return }
      let fields = Array(rest.prefix(header))
      if fields[1] == 1, !fields.contains("org.freedesktop.DBus\0".utf8) { calls.append(fields) }
      if !fields.contains("keyhole.Mark".utf8) { bytes += length }
      rest = rest.dropFirst(length)
    }
  }
}

/// Returns when a word is in the part of a file that `part` picks.
func wait(
  for word: String, in file: String, _ part: ([UInt8]) -> ArraySlice<UInt8>
) throws(Failure) {
  let limit = now() + 30
  while now() < limit {
    if part(try content(of: file)).contains(word.utf8) { return }
    usleep(10_000)
  }
  throw Failure("\(file): no \(word) within 30 seconds")
}

extension Collection<UInt8> {
  fileprivate func contains(_ word: String.UTF8View) -> Bool { firstRange(of: word) != nil }
}

extension ArraySlice<UInt8> {
  /// Four bytes, the lowest first.
  fileprivate func number(at offset: Int) -> Int {
    self[(startIndex + offset)...].prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
  }
}

/// A whole file.
private func content(of path: String) throws(Failure) -> [UInt8] {
  let descriptor = try checked(unsafe open(path, O_RDONLY | O_CLOEXEC), path)
  defer { close(descriptor) }
  let size = try checked(lseek(descriptor, 0, SEEK_END), path)
  return unsafe [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
    unsafe count = max(0, pread(descriptor, buffer.baseAddress, buffer.count, 0))
  }
}
