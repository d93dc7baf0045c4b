import Glibc
import Platform
import Synchronization

@testable import Fuse

/// Remembers where a write's bytes lay; a write to a file named `later` is answered when the test says so.
final class RememberingFileSystem: MemoryFileSystem, @unchecked Sendable {
  let later = Mutex<Parked<WriteAnswer>?>(nil)
  let arrived = Event()
  private let place = Mutex<(start: UInt, count: Int)>((0, 0))

  /// The last 4,096 bytes of the latest write, as they are in libfuse's buffer now.
  ///
  /// The buffer lives as long as the session runs, and small requests reach only its beginning.
  var tail: [UInt8] {
    let (start, count) = place.withLock { $0 }
    guard let bytes = unsafe UnsafeRawPointer(bitPattern: start) else { return [] }
    return unsafe Array(UnsafeRawBufferPointer(start: bytes + count - 4096, count: 4096))
  }

  override func write(
    _ node: NodeID, handle: FileHandle, offset: Int, bytes: Span<UInt8>, origin: WriteOrigin,
    request: Request,
    reply: consuming WriteReply
  ) {
    let count = bytes.count
    let start = unsafe bytes.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
    place.withLock { $0 = (start, count) }
    guard state.withLock({ $0.names[Array("later".utf8)] }) == node.rawValue else {
      reply.succeed(written: count)
      return
    }
    let parked = reply.park { $0.claim()?.fail(.EINTR) }
    later.withLock { $0 = parked }
    arrived.happen()
  }
}
