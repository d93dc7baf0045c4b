import Platform

/// A process's number: what `Tgid:` in /proc/PID/status says.
public struct ProcessID: Hashable, Sendable {
  /// The number in this process's pid namespace.
  public let rawValue: Int32

  /// The number of a thread group's leader; it is not checked.
  public init(rawValue: Int32) {
    self.rawValue = rawValue
  }
}

/// The process behind a request: of a file operation, of a message on the control socket, or of a command.
///
/// Making one costs nothing. `identity()` reads proc(5), some 50 µs, and is called only where rules or a question need it.
/// A request is decided for an identity, and `Identity.isUnchanged` is asked again immediately before it is answered.
public struct Caller: Sendable {
  private enum Source: Sendable {
    /// The number of a thread, as a FUSE request has it; 0: unknown, or of another pid namespace.
    case thread(Int32)
    case identity(Identity)
  }

  private let source: Source

  /// The caller of a file operation: the number of the thread, as `fuse_req_ctx().pid` has it; 0: unknown.
  public init(thread: Int32) {
    source = .thread(thread)
  }

  /// The process at the other end of a connected socket of the Unix domain, read now: to be made when the connection is
  /// accepted, before the first byte is read from it.
  ///
  /// The kernel names the process that called connect(2). It may have handed the connection to a child and executed
  /// another program before this call. So a server must not act on a message unless its sender is that process: it sends
  /// a random number after the accept, demands it back, and compares SCM_CREDENTIALS of each message with
  /// `Identity.process`. Before each reply that contains a secret it asks `Identity.isUnchanged`.
  public init(connection: Int32) {
    source = .identity(Identity(peerOf: connection))
  }

  /// A caller that was identified before.
  public init(_ identity: Identity) {
    source = .identity(identity)
  }

  /// This process.
  public static var current: Caller { Caller(thread: CurrentProcess.number) }

  /// The identity of the process now; for a connection, that of the moment when it was accepted.
  public func identity() -> Identity {
    switch source {
    case .thread(let thread): Identity(thread: thread)
    case .identity(let identity): identity
    }
  }

  /// The process as it was identified when a rule let it in lately, if it still executes the same program; nil: it is to be
  /// identified, with `identity()`.
  ///
  /// Terminal, session and parents are those of that time: for rules they do not count, and a question needs the present ones.
  func identityForRules() -> Identity? {
    guard case .thread(let thread) = source, thread > 0 else { return nil }
    // Mostly a process's first thread, whose number is the process's: where that is a known process which has not ended, it is
    // no other one's.
    if let identity = RecentCallers.identity(of: ProcessID(rawValue: thread)) { return identity }
    guard let process, process.rawValue != thread else { return nil }
    return RecentCallers.identity(of: process)
  }

  /// Keeps the identity of a process that a rule has let in.
  func keepForRules(_ identity: Identity) {
    if case .thread = source { RecentCallers.keep(identity) }
  }

  /// Whether it is another thread than the first of its process.
  var isOtherThread: Bool {
    guard case .thread(let thread) = source, thread > 0, let process else { return false }
    return process.rawValue != thread
  }

  /// The process that the thread belongs to; nil: it is unknown.
  public var process: ProcessID? {
    switch source {
    case .thread(let thread):
      thread > 0 ? ProcessFiles(thread).threadGroup.map(ProcessID.init) : nil
    case .identity(let identity): identity.process.map { ProcessID(rawValue: $0.number) }
    }
  }

  private var thread: Int32 {
    switch source {
    case .thread(let thread): thread
    case .identity(let identity): identity.process?.number ?? 0
    }
  }
}

/// Two callers are equal if they are the same thread.
extension Caller: Hashable {
  /// Compares the threads, or for callers with an identity the processes' numbers.
  public static func == (one: Caller, other: Caller) -> Bool { one.thread == other.thread }

  /// Hashes the thread that `==` compares.
  public func hash(into hasher: inout Hasher) { hasher.combine(thread) }
}

extension Caller {
  /// Whether a signal is ending the caller right now. The kernel flushes the files of a killed process too; at that
  /// moment the exit code in its stat has the signal in the low 7 bits.
  ///
  /// A caller that closes its files because it executes another program holds a lock that reading its stat waits for,
  /// while it waits for the answer to its flush: so the reading has a deadline. A process that executes is not being
  /// killed. Each write of a value asks for it, so it is first looked whether the caller is ending at all, for which nothing
  /// is waited for and no other thread is needed.
  public var isBeingKilled: Bool {
    guard thread > 0, ProcessFiles(thread).isWithoutMemory else { return false }
    let exitCode = Background.result(within: .milliseconds(50)) { [thread] in
      ProcessFiles(thread).status?.exitCode ?? 0
    }
    return (exitCode ?? 0) & 0x7F != 0
  }
}
