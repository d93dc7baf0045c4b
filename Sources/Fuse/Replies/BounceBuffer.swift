import CFuse
import Glibc
import Synchronization

/// Locked memory for a secret on its way to the kernel, zeroed when dropped.
///
/// Secrets are small: up to ``pooledSize`` a buffer comes from a pool of a few, so that a reply costs no system call;
/// larger ones are mapped for one reply, so that not a megabyte stays locked for each thread.
struct BounceBuffer: ~Copyable {
  /// In bytes.
  static let pooledSize = 16384
  private static let pooledCount = 4
  private static let pool = Mutex<[UInt]>([])

  private let address: UInt
  let byteCount: Int
  private let capacity: Int

  /// Nil if no memory can be locked.
  init?(copying bytes: Span<UInt8>) {
    let byteCount = bytes.count
    let isPooled = byteCount <= Self.pooledSize
    capacity = isPooled ? Self.pooledSize : (byteCount + 4095) & ~4095
    self.byteCount = byteCount
    let reused = isPooled ? Self.pool.withLock { $0.popLast() } : nil
    guard let address = reused ?? Self.map(capacity) else { return nil }
    self.address = address
    copy(bytes)
  }

  deinit {
    // SAFETY: the memory is ours alone until it is in the pool or unmapped.
    unsafe shim_scrub(start, byteCount)
    let address = self.address
    let isKept =
      capacity == Self.pooledSize
      && Self.pool.withLock { pool in
        guard pool.count < Self.pooledCount else { return false }
        pool.append(address)
        return true
      }
    if !isKept { unsafe munmap(start, capacity) }
  }
}

extension BounceBuffer {
  /// Where the bytes are, while self is alive.
  var start: UnsafeMutableRawPointer? { unsafe UnsafeMutableRawPointer(bitPattern: address) }

  private borrowing func copy(_ bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBytes { bytes in
      guard let start = unsafe start, let source = bytes.baseAddress else { return }
      // SAFETY: the buffer was made for as many bytes, and is apart from theirs.
      unsafe memcpy(start, source, bytes.count)
    }
  }

  private static func map(_ size: Int) -> UInt? {
    // SAFETY: a new private mapping, ours alone.
    let memory = unsafe mmap(nil, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    guard unsafe memory != MAP_FAILED, let memory = unsafe memory else { return nil }
    // Not in swap, not in a core file, not in a child.
    guard unsafe mlock(memory, size) == 0, unsafe madvise(memory, size, MADV_DONTDUMP) == 0 else {
      unsafe munmap(memory, size)
      return nil
    }
    _ = unsafe madvise(memory, size, MADV_WIPEONFORK)
    return UInt(bitPattern: memory)
  }
}
