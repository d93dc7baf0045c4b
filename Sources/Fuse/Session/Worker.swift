import CFuse
import Dispatch
import Glibc
import Platform
import Synchronization

/// One thread of ``Workers``, with its receive buffer.
///
/// @unchecked: the buffer is its own thread's alone, and the rest is atomic.
@safe final class Worker: @unchecked Sendable {
  /// True for the one that reads requests.
  let isReader = Atomic<Bool>(false)
  /// Moves on when a request has been read and when it has been handled: odd in between.
  let turn = Atomic<UInt64>(0)
  /// Wakes it while it is the spare: the reader has work, it has become the reader, or all is over. Its own, as the one that was the spare before may not
  /// have woken yet.
  let wakes = DispatchSemaphore(value: 0)
  private let thread = Mutex<ThreadID?>(nil)
  /// Behind a pointer: each use of a stored variable would be checked for exclusive access while it runs.
  private let received: UnsafeMutablePointer<Received>

  @safe private struct Received {
    var buffer = unsafe fuse_buf()
    /// How much of the buffer a request has ever filled, in bytes.
    var used = 0
  }

  init() {
    unsafe received = .allocate(capacity: 1)
    unsafe received.initialize(to: Received())
  }

  deinit {
    unsafe free(received.pointee.buffer.mem)
    unsafe received.deallocate()
  }
}

extension Worker {
  /// To be called first on the worker's own thread.
  func begin() {
    ThreadID.blockSignals()
    thread.withLock { $0 = .current }
  }

  /// To be called last: the rest of a request must not stay in freed memory. What was never filled is not touched,
  /// for it has no memory yet.
  func end() {
    guard let memory = unsafe received.pointee.buffer.mem else { return }
    unsafe shim_scrub(memory, received.pointee.used)
  }

  /// Whether it is the calling thread.
  var isCurrent: Bool { thread.withLock { $0 } == .current }

  var isBusy: Bool { turn.load(ordering: .sequentiallyConsistent) & 1 == 1 }

  /// Ends the wait in ``receive(_:)``.
  func interrupt() {
    thread.withLock { $0 }?.interrupt()
  }

  /// Waits for a request; 0 when the mount is gone, a negative error number when there is none.
  func receive(_ connection: Connection) -> Int32 {
    guard let session = unsafe connection.session else { return 0 }
    let isNew = unsafe received.pointee.buffer.mem == nil
    // SAFETY: the connection keeps the session alive; libfuse allocates the buffer the first time.
    let status = unsafe fuse_session_receive_buf(session, &received.pointee.buffer)
    if isNew { keepFromCores() }
    unsafe received.pointee.used = max(received.pointee.used, Int(status))
    return status
  }

  /// Has the request answered by the table of operations.
  func process(_ connection: Connection) {
    guard let session = unsafe connection.session else { return }
    unsafe fuse_session_process_buf(session, &received.pointee.buffer)
  }

  /// Written secrets pass through the buffer, so no core file may hold its pages.
  private func keepFromCores() {
    guard let memory = unsafe received.pointee.buffer.mem else { return }
    let start = (UInt(bitPattern: memory) + 4095) & ~4095
    let end = unsafe (UInt(bitPattern: memory) + UInt(malloc_usable_size(memory))) & ~4095
    guard start < end else { return }
    // SAFETY: whole pages inside the allocation.
    _ = unsafe madvise(UnsafeMutableRawPointer(bitPattern: start), Int(end - start), MADV_DONTDUMP)
  }
}
