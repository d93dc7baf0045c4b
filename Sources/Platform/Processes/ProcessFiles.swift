import CSystem

/// The files of proc(5) about one process or thread: the only code that reads them.
///
/// Each call reads again. Without a `ProcessHandle` that was alive after the reading, the answers may be about different
/// processes that had the same number one after the other.
public struct ProcessFiles: Sendable {
  /// Namespaces that decide what a number, a user or a path means.
  public enum Namespace: String, CaseIterable, Sendable {
    case user
    case process = "pid"
    case mount = "mnt"
  }

  /// Fields of `stat`, which every user may read.
  public struct Stat: Sendable {
    /// The name of the program, or what the process has set in its place (PR_SET_NAME).
    public let name: String
    private let fields: [ArraySlice<UInt8>]

    init?(_ bytes: [UInt8]) {
      // The second field is the name in parentheses, which may contain anything.
      guard let begin = bytes.firstIndex(of: UInt8(ascii: "(")),
        let end = bytes.lastIndex(of: UInt8(ascii: ")")),
        begin < end
      else { return nil }
      name = String(decoding: bytes[begin..<end].dropFirst(), as: UTF8.self)
      fields = bytes[end...].dropFirst().split(whereSeparator: \.isSpace)
    }

    /// A field by its number in proc(5), from 3 on.
    private func field(_ number: Int) -> String? {
      fields.indices.contains(number - 3) ? String(decoding: fields[number - 3], as: UTF8.self) : nil
    }

    /// `R`, `S`, `T` for stopped, `Z` for a zombie …
    public var state: Character? { field(3).flatMap(\.first) }

    /// The process ID of the parent; 0: it is in another pid namespace.
    public var parent: Int32? { field(4).flatMap { Int32($0) } }

    /// Whether the process may use its terminal: it is not stopped, and its group is the one in the foreground
    /// (tcgetpgrp(3)), or it has no terminal.
    package var mayUseTerminal: Bool { terminal == 0 || state != "T" && field(5) == field(8) }

    /// The process ID of the session's leader (setsid(2)); 0: it is in another pid namespace.
    public var session: Int32? { field(6).flatMap { Int32($0) } }

    /// The device of the controlling terminal; 0: none.
    public var terminal: UInt64 { field(7).flatMap { Int64($0) }.map { UInt64(bitPattern: $0) } ?? 0 }

    /// In clock ticks since the system's start.
    public var start: UInt64? { field(22).flatMap { UInt64($0) } }

    /// As waitpid(2) would tell it; 0 while the process is not ending.
    public var exitCode: Int32 { field(52).flatMap { Int32($0) } ?? 0 }
  }

  /// The ID of the process or thread, in the pid namespace of /proc.
  public let number: Int32
  private let folder: String

  /// Names a process or thread; nothing is read.
  public init(_ number: Int32) {
    self.number = number
    folder = "/proc/\(number)"
  }

  /// /proc/PID/stat, read now; nil: there is no such process.
  public var status: Stat? { Self.bytes("\(folder)/stat", limit: 4096).flatMap { Stat($0) } }

  /// The number of the process that a thread belongs to.
  ///
  /// Each write of a value asks for it, mostly of a process's first thread, for which a system call answers without /proc.
  public var threadGroup: Int32? {
    linux_is_process(number) != 0 ? number : field("Tgid:").flatMap { Int32($0) }
  }

  /// The real user.
  public var user: UInt32? { field("Uid:").flatMap { UInt32($0) } }

  /// Whether a thread has given back its memory, as it does at its end before it closes its files; false: it is gone.
  ///
  /// The first word of `statm`, the size of the memory, is 0 then. Reading it never waits; reading `stat` waits for a process
  /// that executes another program.
  public var isWithoutMemory: Bool {
    Self.bytes("\(folder)/statm", limit: 256)?.starts(with: "0 ".utf8) == true
  }

  /// The first word after a name at the beginning of a line of `status`, which has the names asked for near its start.
  ///
  /// Each write of a value asks for one: so it looks at bytes, not at characters.
  private func field(_ name: String) -> String? {
    guard let status = Self.bytes("\(folder)/status", limit: 4096) else { return nil }
    var rest = status[...]
    while !rest.starts(with: name.utf8) {
      guard let end = rest.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
      rest = rest[end...].dropFirst()
    }
    let word = rest.dropFirst(name.utf8.count).drop { $0.isSpace }.prefix { !$0.isSpace }
    return String(decoding: word, as: UTF8.self)
  }

  /// The words of the command line, as the process shows them: it may change them.
  public var commandLine: [String] { Self.words(commandLineBytes) }

  /// The first 16 KiB of the command line, with a NUL byte behind each word.
  public var commandLineBytes: [UInt8] { Self.bytes("\(folder)/cmdline") ?? [] }

  /// The words of such bytes.
  public static func words(_ bytes: [UInt8]) -> [String] {
    bytes.split(separator: 0, omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
  }
}

// Files that only a process may read that could also trace this one (ptrace(2), PTRACE_MODE_READ).
extension ProcessFiles {
  /// nil: it can't be read, as that of a process which is not dumpable.
  public var executable: FileID? { FileID("\(folder)/exe") }

  /// As the kernel shows it; ` (deleted)` follows where the file has no name any more.
  public var executablePath: String? { Self.link("\(folder)/exe") }

  /// A path by which the executable can be opened, whatever its name.
  public var executableLink: String { "\(folder)/exe" }

  /// The path that /proc/PID/cwd leads to; nil: it can't be read.
  public var workingDirectory: String? { Self.link("\(folder)/cwd") }

  /// The path that a descriptor leads to, as the kernel shows it; nil: it has none of the number, or it can't be read.
  package func path(ofDescriptor number: Int) -> String? { Self.link("\(folder)/fd/\(number)") }

  /// nil: it can't be read.
  public func namespace(_ namespace: Namespace) -> FileID? { FileID("\(folder)/ns/\(namespace.rawValue)") }

  /// The path of a character device that standard input, output or error is; nil: none of them is.
  public func terminalPath(device: UInt64) -> String? {
    guard device != 0 else { return nil }
    for number in [0, 1, 2] {
      // A file elsewhere could be one of a mount that waits for this process.
      guard let path = path(ofDescriptor: number), path.hasPrefix("/dev/") else { continue }
      if characterDevice(path) == device { return path }
    }
    // tty(4) of pseudo-terminals: major numbers 136 to 143.
    let (major, minor) = (device >> 8 & 0xFFF, device & 0xFF | device >> 12 & 0xFFF00)
    return (136...143).contains(major) ? "/dev/pts/\((major - 136) << 20 | minor)" : nil
  }
}

extension ProcessFiles {
  /// One read(2): the answer is about one process, also where that ends or starts another program meanwhile.
  private static func bytes(_ path: String, limit: Int = 16 * 1024) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: limit)
    var span = bytes.mutableSpan
    guard let count = try? Descriptor(path, .reading).read(into: &span) else { return nil }
    return Array(bytes[..<count])
  }

  private static func link(_ path: String) -> String? {
    try? Files.target(ofLink: path)
  }
}

extension UInt8 {
  /// A blank, a tab or the end of a line.
  fileprivate var isSpace: Bool { self == 0x20 || (0x09...0x0D).contains(self) }
}

/// nil: it is none, or there is no such file.
private func characterDevice(_ path: String) -> UInt64? {
  guard let status = try? Files.status(path), status.kind == .characterDevice else { return nil }
  return status.representedDevice
}
