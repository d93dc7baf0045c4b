import Glibc
import LossyFileSystem

/// `keyhole mount` over the stores below a folder, which may be on a lossy disk.
final class KeyholeMount {
  let path: String
  private let sandbox: Sandbox
  private let guardian: Guardian
  private let program: Child

  /// Returns when the mount is there.
  init(stores: String) throws {
    sandbox = try Sandbox()
    path = try sandbox.folder("mount")
    guardian = try Guardian(of: path)
    let environment = [
      "HOME=\(sandbox.root)", "XDG_CONFIG_HOME=\(stores)/config", "XDG_DATA_HOME=\(stores)/data",
      "XDG_STATE_HOME=\(stores)/state", "XDG_RUNTIME_DIR=\(try sandbox.folder("run"))",
    ]
    let command = [
      Products.folder + "/keyhole", "mount", "--foreground", "-o", "keychain=vault", path,
    ]
    program = try Child(command, environment: environment)
    try Self.waitForMount(at: path, until: .now + .seconds(20))
  }

  /// Lazy, so that the program can end by itself; dropping it kills it.
  deinit {
    Self.detach(path)
    guardian.dismiss()
  }

  /// Runs a script in the mount; what it prints. - Throws: where a command of it fails.
  func run(_ script: String) throws -> String {
    try Child(["/bin/sh", "-ec", "cd \"$0\"; \(script)", path]).finish(within: .seconds(20))
  }
}

extension KeyholeMount {
  /// The kernel tells a change of its table by POLLPRI.
  private static func waitForMount(at path: String, until deadline: ContinuousClock.Instant) throws {
    let table = unsafe open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)
    defer { close(table) }
    while try !contains(path, table) {
      var entry = pollfd(fd: table, events: Int16(POLLPRI), revents: 0)
      let left = max((deadline - .now) / .milliseconds(1), 0)
      guard unsafe poll(&entry, 1, Int32(left)) > 0 else { throw Failure("keyhole did not mount") }
    }
  }

  private static func contains(_ path: String, _ table: Int32) throws -> Bool {
    var text: [UInt8] = []
    var part = [UInt8](repeating: 0, count: 65536)
    lseek(table, 0, SEEK_SET)
    while case let count = unsafe read(table, &part, part.count), count > 0 { text += part[..<count] }
    return String(decoding: text, as: UTF8.self).split(separator: "\n").contains { line in
      line.split(separator: " ").dropFirst(4).first.map(String.init) == path
    }
  }

  private static func detach(_ path: String) {
    if unsafe umount2(path, Int32(MNT_DETACH)) == 0 { return }
    _ = try? Child(["fusermount3", "-u", "-q", "-z", "--", path]).finish()
  }
}
