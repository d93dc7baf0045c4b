import Model
public import Platform
public import Store
import Synchronization

/// The record of the programs that opened secrets: lines of JSON in a file that this process only ever adds to.
///
/// Every process that opens the keychain writes to the same one. When it is full it becomes `access.log.1`, in place
/// of what had that name.
public final class AccessLog: AccessRecord {
  /// In bytes, for each of the two files.
  public static let limit = 2 << 20

  /// The file with the latest lines, and the one with those before.
  public let path: String
  /// The file that the log becomes when it is full: `access.log.1`.
  public var olderPath: String { path + ".1" }
  private var offPath: String { path + ".off" }
  private var allPath: String { path + ".all" }

  private let limit: Int
  private let state = Mutex(State())
  /// The accesses that are noted, and until when that is not looked up again: to look costs more than the rest of an access.
  private let takesGuarded = Atomic(true)
  private let takesOthers = Atomic(false)
  private let isKnownUntil = Atomic<UInt64>(0)
  /// In milliseconds.
  private static let patience: UInt64 = 50

  private struct State: ~Copyable {
    var file: Descriptor?
    var id: FileID?
    /// When the file was seen to have the name, in milliseconds.
    var time: UInt64 = 0
    /// Why the last line could not be written.
    var failure: Errno?
  }

  /// - Parameters:
  ///   - stateFolder: the folder of the log; the file is made with the first line.
  ///   - limit: the size in bytes from which on the log is full.
  public init(stateFolder: String, limit: Int = AccessLog.limit) {
    path = stateFolder + "/access.log"
    self.limit = limit
  }

  /// Whether accesses are recorded: the file `access.log.off` is missing.
  public var isOn: Bool { !Files.exists(offPath) }

  /// Whether an access is recorded: of guarded items unless the log is off, of others after `keyhole log --all`.
  public func takes(guarded: Bool) -> Bool {
    let now = Self.milliseconds()
    if now >= isKnownUntil.load(ordering: .relaxed) {
      let isOn = isOn
      takesGuarded.store(isOn, ordering: .relaxed)
      takesOthers.store(isOn && Files.exists(allPath), ordering: .relaxed)
      isKnownUntil.store(now + Self.patience, ordering: .relaxed)
    }
    return guarded ? takesGuarded.load(ordering: .relaxed) : takesOthers.load(ordering: .relaxed)
  }

  private static func milliseconds() -> UInt64 {
    let now = SystemTime.coarse
    return UInt64(clamping: now.seconds) &* 1000 &+ UInt64(now.nanoseconds) / 1_000_000
  }

  /// errno(3) of the last line that could not be written; 0: it was.
  public var failure: Int32 { state.withLock { $0.failure?.rawValue ?? 0 } }

  /// Appends one line (O_APPEND). A failure is kept in `failure`, and the access goes on.
  public func note(_ event: AccessEvent) {
    guard event.operation == .record || takes(guarded: true) else { return }
    let line = Array(event.line.utf8)
    state.withLock { state in
      state.failure = nil
      do throws(Errno) {
        try follow(&state)
        // With O_APPEND lines of several processes do not mix.
        try state.file?.write(line)
      } catch {
        state.failure = error
      }
    }
  }

  /// The accesses that are noted.
  public enum Extent: Sendable {
    case nothing
    /// Accesses to items with access flags or rules.
    case guarded
    case everything
  }

  /// Returns when every process has taken notice. - Throws: why the files that say so can't be made or removed.
  public func note(_ extent: Extent) throws(Errno) {
    try turn(offPath, on: extent == .nothing)
    try turn(allPath, on: extent == .everything)
    // A tick of the clock more than they look away.
    Pause.microseconds(UInt32(clamping: Self.patience + 10) * 1000)
  }

  private func turn(_ path: String, on isWanted: Bool) throws(Errno) {
    if isWanted {
      _ = try Descriptor(path, [.writing, .create, .noFollow])
    } else {
      try Files.remove(path)
    }
  }
}

extension AccessLog {
  /// Opens the file that has the name now, and begins another where it is full. The name is looked up once in a tick of the clock, which
  /// has many accesses.
  private func follow(_ state: inout State) throws(Errno) {
    let now = Self.milliseconds()
    if state.time == now, let open = try state.file?.status, open.size < limit, open.links > 0 { return }
    let present = try Files.status(path)
    state.time = now
    if let present, present.id == state.id, present.size < limit { return }
    if let present, present.size >= limit { try setAside() }
    let file = try Descriptor(path, [.writing, .append, .create, .noFollow])
    state.id = try file.status.id
    state.file = consume file
  }

  /// Gives the full file the older one's name, unless another process has just done it: then the file that has the
  /// name now is a new one, and what would go is the record before it.
  private func setAside() throws(Errno) {
    do throws(Errno) {
      let file = try Descriptor(path, [.reading, .noFollow])
      try file.lock()
      let own = try file.status
      guard own.size >= limit, try Files.status(path)?.id == own.id else { return }
      try Files.rename(path, to: olderPath)
    } catch .ENOENT {
      return
    }
  }
}
