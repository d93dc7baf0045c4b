import Model
import Platform

/// The program file of a process as it was when the process started, so that a newer one is noticed.
struct ProgramStamp: Equatable {
  /// Its path; after a package was upgraded another file has it.
  let path: String
  /// Inode, size and the time of its last change.
  let stamp: String

  init(path: String, stamp: String) {
    self.path = path
    self.stamp = stamp
  }

  /// This process's own; nil: proc(5) can't be read.
  static func current() -> ProgramStamp? {
    guard let path = try? Files.target(ofLink: "/proc/self/exe"), let stamp = stamp(of: "/proc/self/exe")
    else {
      return nil
    }
    return ProgramStamp(path: path, stamp: stamp)
  }

  /// Whether another file has the path now. Without one there is nothing newer.
  var isReplaced: Bool { Self.stamp(of: path).map { $0 != stamp } ?? false }

  private static func stamp(of path: String) -> String? {
    guard let status = try? Files.status(path) else { return nil }
    return "\(status.id.inode) \(status.size) \(status.modified.seconds).\(status.modified.nanoseconds)"
  }
}
