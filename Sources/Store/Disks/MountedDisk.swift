import Glibc
import Model

/// The mount that a folder is on, as /proc/self/mountinfo has it: proc(5).
struct MountedDisk {
  /// Where it is mounted.
  let target: String
  /// The device, or what stands for one.
  let source: String
  /// The file system itself takes no writes although it was mounted for them: the kernel turns it so after an error.
  let hasFailed: Bool

  /// nil: it is not known.
  init?(of folder: String) {
    guard let real = unsafe realpath(folder, nil) else { return nil }
    // SAFETY: realpath(3) gives a string of its own, which ends with NUL.
    defer { unsafe free(real) }
    let path = unsafe String(cString: real)
    let mounts = Self.lines("/proc/self/mountinfo").compactMap { MountedDisk(line: $0) }
    // Of two that are mounted on each other, the later one shows.
    guard
      let mount = mounts.filter({ $0.holds(path) }).reversed().max(by: {
        $0.target.utf8.count < $1.target.utf8.count
      })
    else { return nil }
    self = mount
  }

  private init?(line: String) {
    let fields = line.split(separator: " ").map(String.init)
    guard fields.count > 8, let dash = fields.firstIndex(of: "-"), fields.count > dash + 3 else { return nil }
    let (mount, superblock) = (fields[5].split(separator: ","), fields[dash + 3].split(separator: ","))
    (target, source) = (Self.unescaped(fields[4]), Self.unescaped(fields[dash + 2]))
    // `emergency_ro` since Linux 6.15; before, only the superblock became read-only.
    hasFailed = superblock.contains("emergency_ro") || mount.contains("rw") && superblock.contains("ro")
  }

  private func holds(_ path: String) -> Bool {
    if target == "/" { return true }
    let (path, target) = (Array(path.utf8), Array(target.utf8))
    return path.starts(with: target)
      && (path.count == target.count || path[target.count] == UInt8(ascii: "/"))
  }

  /// Checks the file system and mounts it again.
  var commandThatChecks: String {
    let (target, source) = (target.quotedForShell, source.quotedForShell)
    let arguments = isInFstab ? target : "\(source) \(target)"
    return "sudo umount \(target) && sudo fsck -y \(source); sudo mount \(arguments)"
  }

  private var isInFstab: Bool {
    Self.lines("/etc/fstab").contains { line in
      let fields = line.split(whereSeparator: \.isWhitespace).map(String.init)
      return fields.count > 1 && !fields[0].hasPrefix("#") && Self.unescaped(fields[1]) == target
    }
  }

  private static func lines(_ path: String) -> [String] {
    guard let file = unsafe fopen(path, "re") else { return [] }
    defer { unsafe fclose(file) }
    var (bytes, part) = ([UInt8](), [UInt8](repeating: 0, count: 16 * 1024))
    while true {
      // SAFETY: the buffer says how long it is.
      let count = unsafe fread(&part, 1, part.count, file)
      if count == 0 { break }
      bytes += part.prefix(count)
    }
    return bytes.split(separator: UInt8(ascii: "\n")).map { String(decoding: $0, as: UTF8.self) }
  }

  /// Blanks, tabs, line feeds and backslashes stand in octal.
  private static func unescaped(_ field: String) -> String {
    var (bytes, rest) = ([UInt8](), Array(field.utf8)[...])
    while let byte = rest.popFirst() {
      let digits = String(decoding: rest.prefix(3), as: UTF8.self)
      if byte == UInt8(ascii: "\\"), let code = UInt8(digits, radix: 8) {
        bytes.append(code)
        rest = rest.dropFirst(3)
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
