import Glibc

/// The mounts of this process's namespace: /proc/self/mountinfo, proc(5).
struct MountTable {
  struct Entry {
    var path: String
    var type: String
    var user: UInt32?
    /// `major:minor`; of FUSE the connection's number in /sys/fs/fuse/connections.
    var device: String
  }

  let entries: [Entry]

  init() {
    entries = readFile("/proc/self/mountinfo").split(separator: "\n").compactMap { Entry(line: $0) }
  }

  /// What is mounted at a path, the topmost.
  func entry(at path: String) -> Entry? {
    entries.last { $0.path == path }
  }
}

extension MountTable.Entry {
  fileprivate init?(line: Substring) {
    let fields = line.split(separator: " ")
    guard fields.count > 8, let dash = fields.firstIndex(of: "-"), fields.count > dash + 3 else { return nil }
    path = fields[4].unescaped
    type = String(fields[dash + 1])
    device = String(fields[2])
    let option = fields[dash + 3].split(separator: ",").first { $0.hasPrefix("user_id=") }
    user = option.flatMap { UInt32($0.dropFirst(8)) }
  }

  /// Whether this user mounted it, and it is Keyhole.
  var isOwn: Bool { type == "fuse.keyhole" && user == getuid() }

  /// Whether nobody answers there any more: `Transport endpoint is not connected`.
  var isDead: Bool {
    var status = stat()
    return unsafe stat(path, &status) != 0 && (errno == ENOTCONN || errno == ECONNABORTED)
  }
}

extension Substring {
  /// Blanks, tabs, line feeds and backslashes stand in octal.
  fileprivate var unescaped: String {
    var bytes: [UInt8] = []
    var rest = utf8[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "\\"),
        let code = UInt8(String(decoding: rest.prefix(3), as: UTF8.self), radix: 8)
      else {
        bytes.append(byte)
        continue
      }
      bytes.append(code)
      rest = rest.dropFirst(3)
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// The whole file; empty where it can't be read.
func readFile(_ path: String) -> String {
  // SAFETY: a variadic call without its variable part.
  let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
  guard descriptor >= 0 else { return "" }
  defer { close(descriptor) }
  var bytes: [UInt8] = []
  var chunk = [UInt8](repeating: 0, count: 16 * 1024)
  while true {
    // SAFETY: the chunk says how long it is.
    let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
    guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
    bytes += chunk[..<count]
  }
}
