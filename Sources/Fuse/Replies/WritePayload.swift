import CFuse
import Synchronization

/// The bytes of a write where libfuse received them, zeroed before that buffer is used again.
///
/// The buffer is the worker's: it is ours until the operation returns, and then takes the next request. It is
/// zeroed by the answer or by the operation's return, whichever is first. After that the answer of a parked write finds nothing.
@safe final class WritePayload: Sendable {
  private struct Range {
    let start: UInt
    let count: Int
  }

  private let range: Mutex<Range?>

  init(_ bytes: UnsafeRawBufferPointer) {
    range = Mutex(Range(start: UInt(bitPattern: bytes.baseAddress), count: bytes.count))
  }

  func scrub() {
    range.withLock { range in
      // SAFETY: not nil, so the operation has not returned; if it tries to now, it waits for this lock.
      guard let bytes = range.take() else { return }
      unsafe shim_scrub(UnsafeRawPointer(bitPattern: bytes.start), bytes.count)
    }
  }
}
