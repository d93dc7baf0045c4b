import Glibc
import Model
public import Store
import Synchronization

/// The record of who opened which secret: lines of JSON in a file that this process only ever adds to.
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
  /// Whether accesses to every item are noted, and until when that is not looked up again: to look costs more than the rest of
  /// an access to an unguarded item.
  private let takesAll = Atomic(false)
  private let isKnownUntil = Atomic<UInt64>(0)
  /// In milliseconds.
  private static let patience: UInt64 = 50

  private struct State {
    var descriptor: Int32 = -1
    var inode: ino_t = 0
    var failure: Int32 = 0
  }

  /// - Parameters:
  ///   - stateFolder: the folder of the log; the file is made with the first line.
  ///   - limit: the size in bytes from which on the log is full.
  public init(stateFolder: String, limit: Int = AccessLog.limit) {
    path = stateFolder + "/access.log"
    self.limit = limit
  }

  deinit {
    let descriptor = state.withLock { $0.descriptor }
    if descriptor >= 0 { close(descriptor) }
  }

  /// Whether accesses are recorded: the file `access.log.off` is missing.
  public var isOn: Bool { unsafe access(offPath, F_OK) != 0 }

  /// Whether an access is recorded: of guarded items unless the log is off, of others after `keyhole log --all`.
  public func takes(guarded: Bool) -> Bool {
    guard !guarded else { return isOn }
    let now = Self.milliseconds()
    if now >= isKnownUntil.load(ordering: .relaxed) {
      takesAll.store(unsafe access(allPath, F_OK) == 0, ordering: .relaxed)
      isKnownUntil.store(now + Self.patience, ordering: .relaxed)
    }
    return takesAll.load(ordering: .relaxed)
  }

  private static func milliseconds() -> UInt64 {
    var now = timespec()
    // SAFETY: a live structure. The coarse clock takes no call of the system.
    unsafe clock_gettime(CLOCK_MONOTONIC_COARSE, &now)
    return UInt64(now.tv_sec) * 1000 + UInt64(now.tv_nsec) / 1_000_000
  }

  /// errno(3) of the last line that could not be written; 0: it was.
  public var failure: Int32 { state.withLock { $0.failure } }

  /// Appends one line (O_APPEND). A failure is kept in `failure`, and the access goes on.
  public func note(_ event: AccessEvent) {
    guard isOn || event.operation == .record else { return }
    let line = Array(event.line.utf8)
    state.withLock { state in
      state.failure = 0
      // SAFETY: the buffer says how long it is. With O_APPEND lines of several processes do not mix.
      guard follow(&state),
        unsafe line.withUnsafeBytes({ unsafe write(state.descriptor, $0.baseAddress, $0.count) })
          == line.count
      else { return state.failure = errno }
    }
  }

  /// The accesses that are noted.
  public enum Extent: Sendable {
    case nothing
    /// Accesses to items with access flags or rules.
    case guarded
    case everything
  }

  /// Returns when every process has taken notice; false, with errno(3), where that can't be done.
  public func note(_ extent: Extent) -> Bool {
    guard turn(offPath, on: extent == .nothing), turn(allPath, on: extent == .everything) else {
      return false
    }
    // A tick of the clock more than they look away.
    usleep(useconds_t(Self.patience + 10) * 1000)
    return true
  }

  private func turn(_ path: String, on isWanted: Bool) -> Bool {
    guard isWanted else { return unsafe unlink(path) == 0 || errno == ENOENT }
    // SAFETY: a variadic call with its one argument.
    let file = unsafe open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    if file >= 0 { close(file) }
    return file >= 0
  }
}

extension AccessLog {
  /// Opens the file that has the name now, and begins another where it is full. False: errno(3) says why.
  private func follow(_ state: inout State) -> Bool {
    var status = stat()
    let isThere = unsafe stat(path, &status) == 0
    if isThere, state.descriptor >= 0, status.st_ino == state.inode, status.st_size < limit { return true }
    if isThere, status.st_size >= limit, !setAside() { return false }
    if state.descriptor >= 0 { close(state.descriptor) }
    // SAFETY: a variadic call with its one argument.
    state.descriptor = unsafe open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard state.descriptor >= 0, unsafe fstat(state.descriptor, &status) == 0 else { return false }
    state.inode = status.st_ino
    return true
  }

  /// Gives the full file the older one's name, unless another process has just done it: then the file that has the
  /// name now is a new one, and what would go is the record before it.
  private func setAside() -> Bool {
    // SAFETY: a variadic call without its variable part.
    let file = unsafe open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
    guard file >= 0 else { return errno == ENOENT }
    defer { close(file) }
    var (own, present) = (stat(), stat())
    guard flock(file, LOCK_EX) == 0, unsafe fstat(file, &own) == 0 else { return false }
    guard unsafe stat(path, &present) == 0, present.st_ino == own.st_ino, own.st_size >= limit else {
      return true
    }
    return unsafe rename(path, olderPath) == 0
  }
}
