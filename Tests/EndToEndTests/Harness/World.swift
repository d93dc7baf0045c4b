import Glibc

/// A home of its own for one test: folders, and the environment that leads to them.
struct World: Sendable {
  let root: String
  let environment: [String]

  var home: String { root + "/home" }
  var config: String { root + "/config" }
  var data: String { root + "/data" }
  var state: String { root + "/state" }
  var runtime: String { root + "/run" }
  var mount: String { root + "/mount" }
  var outside: String { root + "/outside" }
  var log: String { root + "/log" }

  /// `extra`: variables besides those that lead to the folders.
  init(environment extra: [String] = []) throws {
    let folder = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
    var template = Array("\(folder)/keyhole-test.XXXXXX".utf8CString)
    guard unsafe mkdtemp(&template) != nil else { throw Errno.last }
    root = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let names = Set(extra.map { $0.prefix { $0 != "=" } })
    let ours = [
      "PATH=\(Products.folder):/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
      "HOME=\(root)/home", "XDG_CONFIG_HOME=\(root)/config", "XDG_DATA_HOME=\(root)/data",
      "XDG_STATE_HOME=\(root)/state", "XDG_RUNTIME_DIR=\(root)/run", "TMPDIR=\(root)/outside",
      "MOUNT=\(root)/mount", "CONFIG=\(root)/config", "DATA=\(root)/data", "OUT=\(root)/outside",
      "LC_ALL=C.UTF-8",
      // The user may lock the session while the tests run.
      "DBUS_SYSTEM_BUS_ADDRESS=unix:path=\(root)/no-bus",
      // Far from UTC, and not by whole hours, so that a date in local time shows.
      "TZ=Asia/Kathmandu",
    ]
    // Of two with one name, a shell takes the last one.
    environment = extra + ours.filter { !names.contains($0.prefix { $0 != "=" }) }
    for folder in [home, config, data, state, runtime, mount, outside] {
      try System.mkdir(folder)
      try System.chmod(folder, 0o700)
    }
  }

  func remove() {
    Self.remove(root)
  }

  /// `rm -r` that goes into no other file system.
  private static func remove(_ path: String) {
    guard let status = try? System.status(path) else { return }
    guard status.st_mode & S_IFMT == S_IFDIR else {
      try? System.unlink(path)
      return
    }
    for name in (try? System.names(path)) ?? [] {
      let child = "\(path)/\(name)"
      if let below = try? System.status(child), below.st_dev != status.st_dev { continue }
      remove(child)
    }
    try? System.rmdir(path)
  }
}

/// Where the build put the programs under test.
enum Products {
  /// The folder of the test bundle, which on Linux is a program itself.
  static let folder: String = {
    if let folder = unsafe getenv("KEYHOLE_PRODUCTS") { return unsafe String(cString: folder) }
    let program = System.target(ofLink: "/proc/self/exe")
    return String(program.prefix(upTo: program.lastIndex(of: "/") ?? program.startIndex))
  }()

  static let keyhole = folder + "/keyhole"
  static let project = String(#filePath.split(separator: "/Tests/EndToEndTests")[0])
  /// mount.keyhole and what else is not compiled.
  static let helpers = project + "/mount-helpers"
  static let documentation = project + "/Documentation"
  static let foundationProgram = folder + "/FoundationProgram"
  static let wrapperProgram = folder + "/WrapperProgram"
}

/// The requirements of tests that need more than a user's rights.
enum Privileges {
  static let isRoot = geteuid() == 0
}
