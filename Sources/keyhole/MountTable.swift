import CLinux
import Glibc

/// The mounts of this process's namespace: /proc/self/mountinfo, proc(5).
struct MountTable {
  struct Entry {
    var path: String
    var type: String
    var user: UInt32?
    var group: UInt32?
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
    let options = fields[dash + 3].split(separator: ",")
    let number = { (name: String) in
      options.first { $0.hasPrefix(name) }.flatMap { UInt32($0.dropFirst(name.utf8.count)) }
    }
    user = number("user_id=")
    group = number("group_id=")
  }

  func isKeyhole(of user: uid_t) -> Bool { type == "fuse.keyhole" && self.user == user }

  /// Whether nobody answers there any more: `Transport endpoint is not connected`.
  ///
  /// Only the user who mounted is told; others, root too, may not even ask.
  var isDead: Bool {
    let error = unsafe linux_stat_as(user ?? getuid(), group ?? getgid(), path)
    return error == ENOTCONN || error == ECONNABORTED
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
