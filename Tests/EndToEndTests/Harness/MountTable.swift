import Glibc

/// The kernel's list of mounts.
enum MountTable {
  private static let path = "/proc/self/mountinfo"

  static func contains(_ mount: String) -> Bool {
    guard let table = try? System.text(path) else { return false }
    return contains(mount, in: table)
  }

  /// Waits until something is mounted there. The kernel tells a change of the table by POLLPRI.
  static func wait(for mount: String, orEndOf program: Program, until deadline: Deadline) throws {
    let table = try OpenFile(path, O_RDONLY)
    while true {
      try table.seek(to: 0)
      let text = String(decoding: try table.readAll(), as: UTF8.self)
      if contains(mount, in: text) { return }
      if program.hasEnded { return }
      try Program.wait(for: [(table, POLLPRI), (program.end, POLLIN)], until: deadline, "the mount")
    }
  }

  private static func contains(_ mount: String, in table: String) -> Bool {
    table.split(separator: "\n").contains { line in
      let fields = line.split(separator: " ")
      return fields.count > 4 && fields[4] == mount
    }
  }
}
