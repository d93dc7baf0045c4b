import Glibc
import Model
import Store
import Suites

/// Private folders for one test, and what other programs do to the files in them.
final class SuiteSandbox: Sendable {
  let root: String
  var folder: String { root + "/config" }
  var state: String { root + "/state" }

  init() {
    let folder = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
    let template = "\(folder)/keyhole-suites-" + String(UInt64.random(in: 0 ... .max), radix: 36)
    unsafe mkdir(template, 0o700)
    root = template
    unsafe mkdir(root + "/config", 0o700)
  }

  /// Again where an engine was still writing: it works beside the tests.
  deinit { for _ in 0..<5 where Self.run(["rm", "-rf", "--one-file-system", root]) != 0 {} }

  /// An engine of its own: to the files, another process.
  func engine() -> PropertyListFolder {
    PropertyListFolder(folder: folder, stateFolder: state)
  }

  func path(_ suite: String) -> String { folder + "/" + suite + ".plist" }

  /// Writes in place, as Foundation does.
  func write(_ bytes: some Collection<UInt8>, to path: String) {
    let file = unsafe open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    defer { close(file) }
    let bytes = Array(bytes)
    precondition(unsafe Glibc.write(file, bytes, bytes.count) == bytes.count)
  }

  func write(_ text: String, to path: String) { write(text.utf8, to: path) }

  func bytes(_ path: String) -> [UInt8] {
    let file = unsafe open(path, O_RDONLY)
    guard file >= 0 else { return [] }
    defer { close(file) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = unsafe read(file, &chunk, chunk.count)
      guard count > 0 else { return bytes }
      bytes += chunk[..<count]
    }
  }

  func text(_ path: String) -> String { String(decoding: bytes(path), as: UTF8.self) }

  /// The names in a folder of the sandbox, sorted.
  func names(_ path: String) -> [String] {
    guard let directory = unsafe opendir(path) else { return [] }
    defer { unsafe closedir(directory) }
    var names: [String] = []
    while let entry = unsafe readdir(directory) {
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) {
        unsafe String(cString: UnsafeRawPointer($0).assumingMemoryBound(to: CChar.self))
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted()
  }

  /// Runs a program and waits for it; its exit code, 128 and more for a signal.
  @discardableResult
  static func run(_ arguments: [String], environment: [String: String]? = nil) -> Int32 {
    var child = pid_t()
    var argv = unsafe arguments.map { unsafe strdup($0) } + [nil]
    var envp = unsafe (environment ?? ["PATH": "/usr/bin:/bin"]).map { unsafe strdup("\($0)=\($1)") } + [nil]
    defer { unsafe (argv + envp).forEach { unsafe free($0) } }
    guard unsafe posix_spawnp(&child, arguments[0], nil, nil, &argv, &envp) == 0 else { return 127 }
    var status: Int32 = 0
    while unsafe waitpid(child, &status, 0) < 0 {}
    return status & 0x7F == 0 ? status >> 8 & 0xFF : 128 + status & 0x7F
  }
}

/// An XML property list with `body` in its dictionary.
func plist(_ body: String) -> String {
  """
  <?xml version="1.0" encoding="UTF-8"?>
  <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
  <plist version="1.0">
  <dict>
  \(body)
  </dict>
  </plist>

  """
}

extension PropertyListFolder {
  func values(_ suite: ExactString) throws -> [ExactString: SettingValue]? {
    try read(suite)?.settings.mapValues(\.value).dictionary
  }

  @discardableResult
  func set(_ key: ExactString, _ value: SettingValue?, in suite: ExactString) throws -> SuiteContents {
    try update(suite, known: nil) { $0.settings[key] = value.map { Setting($0) } }
  }
}
