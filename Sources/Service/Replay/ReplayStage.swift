import CSystem
import Glibc

/// Where replays are performed: below the mount point, and only while the mount is there.
struct ReplayStage {
  private let device: (major: UInt32, minor: UInt32)
  private let mountPoint: String

  init?(device: String, mountPoint: String) {
    let numbers = device.split(separator: ":").compactMap { UInt32($0) }
    guard numbers.count == 2 else { return nil }
    self.device = (numbers[0], numbers[1])
    self.mountPoint = mountPoint
  }

  /// The smallest operation that raises the events of the change. What fails is no longer true, or unmounted.
  func perform(_ line: String) {
    // By scalars: a slash and a combining mark behind it are one Character.
    let line = line.unicodeScalars
    guard let letter = line.first.map(Character.init), let slash = line.lastIndex(of: "/") else { return }
    let path = line.dropFirst(2)
    let folder = path.lastIndex(of: "/").map { mountPoint + "/" + String(path[..<$0]) } ?? mountPoint
    // SAFETY: the string is alive during the call.
    let directory = unsafe linux_open_folder(folder, device.major, device.minor)
    guard directory >= 0 else { return }
    defer { close(directory) }
    perform(letter, String(line[line.index(after: slash)...]), in: directory)
  }

  private func perform(_ letter: Character, _ name: String, in directory: Int32) {
    switch letter {
    case "c":
      if unsafe mknodat(directory, name, S_IFREG | 0o600, 0) != 0, errno == EEXIST {
        touch(name, in: directory)
      }
    case "C": unsafe mkdirat(directory, name, 0o700)
    case "d": unsafe unlinkat(directory, name, 0)
    case "D": unsafe unlinkat(directory, name, AT_REMOVEDIR)
    case "m": touch(name, in: directory)
    case "a": unsafe fchmodat(directory, name, 0o600, 0)
    case "A": unsafe fchmodat(directory, name, 0o700, 0)
    default: break
    }
  }

  /// A new time of modification alone counts as a write: MODIFY, and CLOSE_WRITE at the close.
  private func touch(_ name: String, in directory: Int32) {
    // SAFETY: a variadic call without its variable part.
    let file = unsafe openat(directory, name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard file >= 0 else { return }
    // UTIME_OMIT and UTIME_NOW of sys/stat.h, which are no literals.
    let times = [timespec(tv_sec: 0, tv_nsec: (1 << 30) - 2), timespec(tv_sec: 0, tv_nsec: (1 << 30) - 1)]
    unsafe futimens(file, times)
    close(file)
  }
}
