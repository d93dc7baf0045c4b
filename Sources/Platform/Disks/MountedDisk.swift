/// The mount that a folder is on, as /proc/self/mountinfo has it: proc(5).
package struct MountedDisk {
  private let mount: MountTable.Entry

  /// Where it is mounted.
  package var target: String { mount.path }

  /// The file system itself takes no writes although it was mounted for them: the kernel turns it so after an error.
  package var hasFailed: Bool { mount.hasFailed }

  /// nil: it is not known.
  package init?(of folder: String) {
    guard let path = try? Files.realPath(folder) else { return nil }
    // Of two that are mounted on each other, the later one shows.
    let holding = MountTable().entries.filter { $0.holds(path) }.reversed()
    guard let mount = holding.max(by: { $0.path.utf8.count < $1.path.utf8.count }) else { return nil }
    self.mount = mount
  }

  /// The command that checks the file system and mounts it again. `quote` quotes a word for the shell.
  package func commandThatChecks(quote: (String) -> String) -> String {
    let (target, source) = (quote(target), quote(mount.source))
    let arguments = isInFstab ? target : "\(source) \(target)"
    return "sudo umount \(target) && sudo fsck -y \(source); sudo mount \(arguments)"
  }

  private var isInFstab: Bool {
    readFile("/etc/fstab").split(separator: "\n").contains { line in
      let fields = line.split(whereSeparator: \.isWhitespace)
      guard fields.count > 1, !fields[0].hasPrefix("#") else { return false }
      return Array(fields[1].utf8)[...].octalUnescaped == target
    }
  }
}

extension MountTable.Entry {
  fileprivate func holds(_ path: String) -> Bool {
    if self.path == "/" { return true }
    let (path, target) = (Array(path.utf8), Array(self.path.utf8))
    return path.starts(with: target)
      && (path.count == target.count || path[target.count] == UInt8(ascii: "/"))
  }
}
