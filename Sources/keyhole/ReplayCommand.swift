import ArgumentParser
import CSystem
import Glibc
import Tree

/// The process that does what others did once more, through the mount's path: `ReplayProcess` starts it.
///
/// Its requests are known by its number and answered without a look at the stores. It holds nothing open in the mount
/// between two replays, and ends when its starter does.
struct ReplayCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "echo-changes", abstract: "Tell those who watch a mount of outside changes.",
    shouldDisplay: false)

  /// What the starter and this process talk through.
  static let channel: Int32 = 3

  /// `major:minor` of the mount: at its path may be something else by now.
  @Argument var device: String
  @Argument var mountpoint: String

  func run() throws {
    // Above all the connection to the kernel, which has to be gone when the starter is.
    _ = linux_close_from(UInt32(Self.channel + 1))
    _ = unsafe linux_set_name("keyhole-echo")
    unsafe chdir("/")
    guard let stage = EchoStage(device: device, mountPoint: mountpoint) else { return }
    var lines = LineReader(descriptor: Self.channel)
    while let line = lines.next() {
      stage.perform(line)
      var done = UInt8(ascii: "\n")
      guard unsafe write(Self.channel, &done, 1) == 1 else { return }
    }
  }
}

/// An replay as a line: a letter, a blank, and the path in the tree.
enum ReplayLine {
  static func text(of replay: Replay) -> String {
    "\(letter(replay.kind, isDirectory: replay.isDirectory)) \(replay.path)\n"
  }

  private static func letter(_ kind: Replay.Kind, isDirectory: Bool) -> Character {
    switch kind {
    case .deletion: isDirectory ? "D" : "d"
    case .creation: isDirectory ? "C" : "c"
    case .modification: "m"
    case .attributes: isDirectory ? "A" : "a"
    }
  }
}

/// Where replays are performed: below the mount point, and only while the mount is there.
private struct EchoStage {
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

/// The lines that come through a descriptor.
private struct LineReader {
  let descriptor: Int32
  private var bytes: [UInt8] = []

  init(descriptor: Int32) {
    self.descriptor = descriptor
  }

  /// nil: the other side is gone.
  mutating func next() -> String? {
    while true {
      if let end = bytes.firstIndex(of: UInt8(ascii: "\n")) {
        defer { bytes.removeSubrange(...end) }
        return String(decoding: bytes[..<end], as: UTF8.self)
      }
      var chunk = [UInt8](repeating: 0, count: 4096)
      // SAFETY: the chunk says how long it is.
      let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return nil }
      bytes += chunk[..<count]
    }
  }
}
