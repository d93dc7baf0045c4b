import Dispatch
import Glibc
import Store
import Synchronization

/// A process's number: what `Tgid:` in /proc/PID/status says.
public struct ProcessID: Hashable, Sendable {
  public let rawValue: Int32

  public init(rawValue: Int32) {
    self.rawValue = rawValue
  }
}

/// Who asks. The kernel names the thread; the process behind it is looked up only where it matters.
public struct Caller: Hashable, Sendable {
  /// The number of the thread, as `fuse_req_ctx().pid` has it; 0: unknown, or of another namespace.
  public let thread: Int32

  public init(thread: Int32) {
    self.thread = thread
  }

  /// The caller is this process itself.
  public static var current: Caller { Caller(thread: getpid()) }

  /// The process that the thread belongs to; nil: it can't be told.
  public var process: ProcessID? {
    guard thread > 0, let status = readProcFile("/proc/\(thread)/status") else { return nil }
    guard let line = status.split(separator: "\n").first(where: { $0.hasPrefix("Tgid:") }) else { return nil }
    return Int32(line.dropFirst(5).drop { $0 == "\t" || $0 == " " }).map(ProcessID.init)
  }

  /// Whether a signal is ending the caller right now. The kernel flushes the files of a killed process
  /// too; at that moment field 52 of proc(5)'s stat, the exit code, has the signal in its low 7 bits.
  ///
  /// A caller that closes its files because it executes another program holds a lock that reading its
  /// stat waits for, while it waits for the answer to its flush: so the reading gets a deadline. Who
  /// executes is not being killed.
  public var isBeingKilled: Bool {
    guard thread > 0 else { return false }
    let answer = Answer()
    Background.run { [self] in
      answer.isKilled.store(hasFatalSignal, ordering: .releasing)
      answer.isThere.signal()
    }
    guard answer.isThere.wait(timeout: .now() + .milliseconds(50)) == .success else { return false }
    return answer.isKilled.load(ordering: .acquiring)
  }

  private final class Answer: Sendable {
    let isKilled = Atomic(false)
    let isThere = DispatchSemaphore(value: 0)
  }

  private var hasFatalSignal: Bool {
    guard let stat = readProcFile("/proc/\(thread)/stat") else { return false }
    // The second field is the command in parentheses, which may hold anything.
    guard let end = stat.lastIndex(of: ")") else { return false }
    let fields = stat[stat.index(after: end)...].split(separator: " ")
    guard fields.count >= 50, let code = Int32(fields[49].filter { $0.isNumber }) else { return false }
    return code & 0x7F != 0
  }
}

private func readProcFile(_ path: String) -> String? {
  // SAFETY: a variadic call without its variable part.
  let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
  guard descriptor >= 0 else { return nil }
  defer { close(descriptor) }
  var bytes = [UInt8](repeating: 0, count: 4096)
  // SAFETY: the buffer says how long it is.
  let count = unsafe bytes.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
  guard count > 0 else { return nil }
  return String(decoding: bytes[..<count], as: UTF8.self)
}
