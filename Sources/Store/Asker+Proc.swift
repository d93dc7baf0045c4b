import Glibc
import Model

extension Asker {
  /// The process that a thread of it stands for, read from proc(5).
  ///
  /// nil: it is in another namespace, or its identity can't be read (a process that may not be looked into).
  public init?(thread: Int32) {
    guard thread > 0, let status = Proc.text("/proc/\(thread)/status") else { return nil }
    guard let number = Proc.number("Tgid:", in: status), let user = Proc.number("Uid:", in: status) else {
      return nil
    }
    let folder = "/proc/\(number)"
    guard let own = Proc.link("/proc/self/ns/pid"), Proc.link(folder + "/ns/pid") == own else { return nil }
    guard let program = Proc.link(folder + "/exe"), let file = File(folder + "/exe") else { return nil }
    guard let stat = Proc.Stat(folder), let start = stat.start else { return nil }
    self.init(
      process: Process(number: Int32(number), start: start), program: program, programFile: file,
      commandLine: Proc.words(folder).joined(separator: " "), parents: Proc.parents(of: stat),
      user: UInt32(number: user), terminal: Proc.terminal(folder, stat.terminal))
    script = Proc.script(folder, program: program)
  }
}

extension Asker {
  /// SHA-256 of the executable; nil: it can't be read.
  func digestOfProgram() -> String? {
    Self.digest(ofFile: "/proc/\(process.number)/exe")
  }

  static func digest(ofFile path: String) -> String? {
    guard let file = unsafe fopen(path, "re") else { return nil }
    defer { unsafe fclose(file) }
    var hash = SHA256Hasher()
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while case let count = unsafe fread(&chunk, 1, chunk.count, file), count > 0 {
      hash.update(chunk.span.extracting(..<count))
    }
    return hash.finalize().map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}

extension UInt32 {
  fileprivate init(number: UInt64) { self = UInt32(truncatingIfNeeded: number) }
}

extension Asker.File {
  /// The file behind a path, links followed; nil: there is none.
  public init?(_ path: String) {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { return nil }
    self.init(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
  }
}

/// What proc(5) tells.
private enum Proc {
  struct Stat {
    let name: String
    private let fields: [Substring]

    init?(_ folder: String) {
      // The second field is the command in parentheses, which may hold anything.
      guard let text = Proc.text(folder + "/stat"), let begin = text.firstIndex(of: "("),
        let end = text.lastIndex(of: ")")
      else { return nil }
      name = String(text[text.index(after: begin)..<end])
      fields = text[text.index(after: end)...].split(separator: " ")
    }

    var parent: Int32? { fields.count > 1 ? Int32(fields[1]) : nil }
    var terminal: UInt64 { fields.count > 4 ? Int64(fields[4]).map { UInt64(bitPattern: $0) } ?? 0 : 0 }
    var start: UInt64? { fields.count > 19 ? UInt64(fields[19]) : nil }
  }

  static func bytes(_ path: String) -> [UInt8]? {
    // SAFETY: a variadic call without its variable part.
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 16 * 1024)
    // SAFETY: the buffer says how long it is.
    let count = unsafe bytes.withUnsafeMutableBytes { unsafe read(file, $0.baseAddress, $0.count) }
    return count < 0 ? nil : Array(bytes[..<count])
  }

  static func text(_ path: String) -> String? {
    bytes(path).map { String(decoding: $0, as: UTF8.self) }
  }

  static func link(_ path: String) -> String? {
    var bytes = [UInt8](repeating: 0, count: 4096)
    // SAFETY: the buffer says how long it is.
    let count = unsafe bytes.withUnsafeMutableBytes { bytes in
      unsafe bytes.withMemoryRebound(to: CChar.self) { bytes in
        guard let start = bytes.baseAddress else { return -1 }
        return unsafe readlink(path, start, bytes.count)
      }
    }
    return count < 0 ? nil : String(decoding: bytes[..<count], as: UTF8.self)
  }

  /// The first number of a line of `status`.
  static func number(_ name: String, in status: String) -> UInt64? {
    let line = status.split(separator: "\n").first { $0.hasPrefix(name) }
    return line?.dropFirst(name.count).split(whereSeparator: \.isWhitespace).first.flatMap { UInt64($0) }
  }

  static func words(_ folder: String) -> [String] {
    (bytes(folder + "/cmdline") ?? []).split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
  }

  static func parents(of stat: Stat) -> [String] {
    var (parents, next) = ([String](), stat.parent)
    while let number = next, number > 0, parents.count < 8, let stat = Stat("/proc/\(number)") {
      parents.append("\(stat.name) (\(number))")
      next = stat.parent
    }
    return parents
  }

  /// The device of a controlling terminal, among those that the process has open.
  static func terminal(_ folder: String, _ device: UInt64) -> String? {
    guard device != 0 else { return nil }
    for number in [0, 1, 2] {
      var status = stat()
      guard unsafe stat("\(folder)/fd/\(number)", &status) == 0, status.st_mode & S_IFMT == S_IFCHR,
        status.st_rdev == device
      else { continue }
      return link("\(folder)/fd/\(number)")
    }
    // tty(4) of pseudo-terminals: major numbers 136 to 143.
    let (major, minor) = (device >> 8 & 0xFFF, device & 0xFF | device >> 12 & 0xFFF00)
    return (136...143).contains(major) ? "/dev/pts/\((major - 136) << 20 | minor)" : nil
  }

  private static let interpreters = [
    "sh", "bash", "dash", "zsh", "ksh", "python", "perl", "ruby", "node", "lua", "php", "tclsh", "guile",
  ]

  /// What an interpreter's command line names first that is a file. The process could say anything here.
  static func script(_ folder: String, program: String) -> String? {
    let name = program.split(separator: "/").last ?? ""
    guard interpreters.contains(where: { name.hasPrefix($0) }) else { return nil }
    guard let word = words(folder).dropFirst().first(where: { !$0.hasPrefix("-") }) else { return nil }
    let path = word.hasPrefix("/") ? word : link(folder + "/cwd").map { $0 + "/" + word }
    return path.flatMap { Asker.File($0) == nil ? nil : $0 }
  }
}
