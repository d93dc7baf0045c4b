import CSystem
import Glibc
import Synchronization

/// Why there is no memory for a secret.
public enum SecretMemoryError: Error {
  /// The system grants no more locked memory (RLIMIT_MEMLOCK); errno(3) of the call that refused.
  case exhausted(errno: Int32)
}

/// Overwrites `bytes` with zeros, which the compiler can't leave out.
public func wipe(_ bytes: UnsafeMutableRawBufferPointer) {
  guard let base = bytes.baseAddress else { return }
  // SAFETY: the buffer says how many bytes there are.
  unsafe linux_explicit_bzero(base, bytes.count)
}

/// Overwrites what calls that have returned left on this thread's stack.
///
/// Cryptography keeps pieces of what it opens and seals in its frames, where they would stay until other
/// calls happen to use that part of the stack.
public func wipeStack() {
  linux_scrub_stack()
}

/// The same after one secret was opened, which takes less of the stack than the rest of cryptography.
public func wipeStackOfOpening() {
  linux_scrub_upper_stack()
}

/// Overwrites pieces of about `size` bytes that this thread has just freed.
///
/// For libraries that drop an array with a key in it; it helps as far as the C library gives out next what
/// was freed last.
public func wipeFreed(_ size: Int) {
  linux_scrub_heap(size)
}

/// One piece of the heap. The owner gives it back exactly once, by `SecretHeap.free`.
@safe struct SecretBlock {
  let bytes: UnsafeMutableRawBufferPointer
  /// The most bytes to which a mapping of its own can be extended; 0 for a part of the slab.
  let longest: Int
  /// The most bytes that a mapping of its own ever had: the file of a mapping keeps its pages until the mapping is given back.
  let peak: Int

  var capacity: Int { unsafe bytes.count }
  /// The block is a mapping of its own, not a part of the slab.
  var isMapping: Bool { longest > 0 }
  /// The block can be made longer where it is: a mapping of locked memory, up to the length of its file.
  var isExtensible: Bool { capacity < longest }

  static var empty: SecretBlock {
    unsafe SecretBlock(bytes: UnsafeMutableRawBufferPointer(start: nil, count: 0), longest: 0)
  }

  init(bytes: UnsafeMutableRawBufferPointer, longest: Int, peak: Int = 0) {
    unsafe self.bytes = bytes
    self.longest = longest
    self.peak = max(peak, bytes.count)
  }
}

/// The memory of all secrets of the process.
///
/// Small secrets share one slab, so that reading a password costs no system call; a large one gets a
/// mapping of its own. Both are memfd_secret(2) where the kernel has it: in no core, no swap, not readable
/// through /proc/PID/mem. Elsewhere they are mlock(2)ed and left out of cores by MADV_DONTDUMP.
/// Unlocked memory is never given out, but for `allowUnlockedMemoryWithoutSwap` and `withUnlockedMemoryWithoutSwap`.
final class SecretHeap: Sendable {
  static let shared = SecretHeap()

  /// Half of what may be locked, so that there is room for a mapping besides; 128 KiB where the limit is as usual.
  private static let slabSize = {
    let half = min(Int(clamping: LockedMemoryLimit.bytes / 2), 128 * 1024)
    return max(16 * 1024, half / (16 * 1024) * (16 * 1024))
  }()
  /// Also the alignment: a multiple of any cache line.
  private static let unit = 64
  /// Above this size a system call costs less than the room in the slab.
  private static let largest = 16 * 1024

  /// The length of a mapping's file where no limit is smaller (RLIMIT_FSIZE, at which ftruncate(2) ends the process):
  /// more than nearly any secret has. What is not mapped takes no memory.
  private static let fileLength = 64 * 1024 * 1024

  fileprivate struct State {
    var slab: SlabAddress?
    /// Free ranges of the slab in units, ascending, never adjacent.
    var free: [Range<Int>] = []
  }

  // SAFETY: the address is only ever used while the mutex is held, or by a block's one owner.
  @safe fileprivate struct SlabAddress: @unchecked Sendable {
    let start: UnsafeMutableRawPointer
  }

  private let state = Mutex(State())
  /// Whether memory that can't be locked is given out as long as nothing is swapped to a disk.
  fileprivate let allowsUnlocked = Atomic(false)

  func allocate(_ count: Int) throws(SecretMemoryError) -> SecretBlock {
    guard count > 0 else { return .empty }
    if count <= Self.largest, let block = try allocateFromSlab(count) { return block }
    return try map(count)
  }

  /// A block that the kernel may pin, as direct I/O does; memfd_secret(2)'s pages it may not (EFAULT).
  func allocatePinnable(_ count: Int) throws(SecretMemoryError) -> SecretBlock {
    try mapLocked(pages(count))
  }

  /// Makes a mapping longer without a second one beside it, by mremap(2): the added bytes are zero, and count as locked.
  ///
  /// - Returns: false for a part of the slab and for memory that is not locked, beyond the end of the mapping's file, and where
  ///   the system grants no more; the block is as before.
  func extend(_ block: inout SecretBlock, to count: Int) -> Bool {
    let length = pages(count)
    guard block.isMapping, length > block.capacity, length <= block.longest else { return false }
    // SAFETY: the mapping has this length, and its one owner has it extended.
    let moved = unsafe linux_mremap(block.bytes.baseAddress, block.capacity, length)
    guard let start = unsafe moved else { return false }
    let bytes = unsafe UnsafeMutableRawBufferPointer(start: start, count: length)
    block = unsafe SecretBlock(bytes: bytes, longest: block.longest, peak: block.peak)
    return true
  }

  /// Takes the end of a mapping out of the limit of locked memory. It has to be zero: the file of a mapping keeps its pages, and
  /// shows them again where the mapping is extended. The other blocks stay as they are.
  func shrink(_ block: inout SecretBlock, to count: Int) {
    let length = pages(count)
    guard block.isExtensible, length > 0, length < block.capacity, let start = unsafe block.bytes.baseAddress
    else { return }
    // SAFETY: the end of a mapping, whose one owner gives it back.
    guard unsafe munmap(start + length, block.capacity - length) == 0 else { return }
    let bytes = unsafe UnsafeMutableRawBufferPointer(start: start, count: length)
    block = unsafe SecretBlock(bytes: bytes, longest: block.longest, peak: block.peak)
  }

  func free(_ block: SecretBlock) {
    guard block.capacity > 0 else { return }
    unsafe wipe(block.bytes)
    if block.isMapping {
      // SAFETY: a mapping, whose one owner gives it back.
      unsafe munmap(block.bytes.baseAddress, block.bytes.count)
    } else {
      state.withLock { unsafe $0.release(block.bytes, unit: Self.unit) }
    }
  }

  /// nil: the slab has no room left.
  private func allocateFromSlab(_ count: Int) throws(SecretMemoryError) -> SecretBlock? {
    try state.withLock { state throws(SecretMemoryError) in
      if state.slab == nil {
        state.slab = try unsafe SlabAddress(start: start(of: map(Self.slabSize).bytes))
        state.free = [0..<Self.slabSize / Self.unit]
      }
      return state.take(units: (count + Self.unit - 1) / Self.unit, unit: Self.unit)
    }
  }

  private func start(of bytes: UnsafeMutableRawBufferPointer) throws(SecretMemoryError)
    -> UnsafeMutableRawPointer
  {
    guard let start = bytes.baseAddress else { throw .exhausted(errno: ENOMEM) }
    return unsafe start
  }

  private func map(_ count: Int) throws(SecretMemoryError) -> SecretBlock {
    let length = pages(count)
    if let block = mapSecret(length) { return block }
    return try mapLocked(length)
  }

  /// `count` rounded up to whole pages, in bytes.
  private func pages(_ count: Int) -> Int {
    let page = Int(getpagesize())
    return (count + page - 1) / page * page
  }

  /// nil: the kernel has no memfd_secret(2), or its limit is reached.
  private func mapSecret(_ length: Int) -> SecretBlock? {
    _ = LockedMemoryLimit.bytes
    // Beyond the limit of files, ftruncate(2) would end a process that does not ignore SIGXFSZ.
    let limit = FileSizeLimit.bytes
    guard length <= limit else { return nil }
    let descriptor = linux_memfd_secret()
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    // The length of the file can be set only once.
    let longest = max(length, min(Self.fileLength, limit))
    guard ftruncate(descriptor, longest) == 0 else { return nil }
    let start = unsafe mmap(nil, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
    guard unsafe start != MAP_FAILED else { return nil }
    return unsafe SecretBlock(
      bytes: UnsafeMutableRawBufferPointer(start: start, count: length), longest: longest)
  }

  private func mapLocked(_ length: Int) throws(SecretMemoryError) -> SecretBlock {
    _ = LockedMemoryLimit.bytes
    let start = unsafe mmap(nil, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    guard unsafe start != MAP_FAILED else { throw .exhausted(errno: errno) }
    let isPrivate = unsafe madvise(start, length, MADV_DONTDUMP) == 0
    let isLocked = unsafe isPrivate && mlock(start, length) == 0
    let error = errno
    guard isLocked || isPrivate && mayStayUnlocked else {
      LockedMemoryLimit.noteRefusal()
      unsafe munmap(start, length)
      throw .exhausted(errno: error)
    }
    return unsafe SecretBlock(
      bytes: UnsafeMutableRawBufferPointer(start: start, count: length), longest: isLocked ? .max : length)
  }
}

extension SecretHeap {
  /// Whether nothing is swapped, so that memory need not be locked where that was asked for.
  var mayStayUnlocked: Bool {
    (allowsUnlocked.load(ordering: .relaxed) || UnlockedMemory.isAllowed) && !SwapSpace.isInUse
  }
}

/// Has this process take memory that is not locked where the limit of locked memory (RLIMIT_MEMLOCK) is reached and
/// the machine has no swap space: no disk can get it then. It stays out of cores, and is wiped.
///
/// For commands that handle a secret for a moment that is larger than the limit; a process that lives long may outlast
/// a `swapon`.
public func allowUnlockedMemoryWithoutSwap() {
  SecretHeap.shared.allowsUnlocked.store(true, ordering: .relaxed)
}

/// The same for what `body` takes on this thread, in a process that lives long: for secrets that pass through it, and are
/// wiped when the call ends.
public func withUnlockedMemoryWithoutSwap<Result>(_ body: () -> Result) -> Result {
  UnlockedMemory.$isAllowed.withValue(true) { body() }
}

private enum UnlockedMemory {
  @TaskLocal static var isAllowed = false
}

/// RLIMIT_MEMLOCK, raised to the hard limit with the first use.
package enum LockedMemoryLimit {
  private static let refused = Atomic(false)

  /// Whether memory was refused because of it, to this process.
  package static var wasReached: Bool { refused.load(ordering: .relaxed) }

  static func noteRefusal() { refused.store(true, ordering: .relaxed) }

  /// In bytes.
  package static let bytes: UInt64 = {
    let resource = __rlimit_resource_t(8 /* RLIMIT_MEMLOCK, a macro */)
    var limit = rlimit()
    guard unsafe getrlimit(resource, &limit) == 0 else { return 64 * 1024 }
    if limit.rlim_cur < limit.rlim_max {
      var raised = rlimit(rlim_cur: limit.rlim_max, rlim_max: limit.rlim_max)
      if unsafe setrlimit(resource, &raised) == 0 { return UInt64(raised.rlim_cur) }
    }
    return UInt64(limit.rlim_cur)
  }()
}

/// RLIMIT_FSIZE, which holds for files of memory too.
private enum FileSizeLimit {
  static var bytes: Int {
    var limit = rlimit()
    guard unsafe getrlimit(__rlimit_resource_t(1 /* RLIMIT_FSIZE, a macro */), &limit) == 0 else { return 0 }
    return Int(clamping: limit.rlim_cur)
  }
}

/// proc_swaps(5).
private enum SwapSpace {
  /// Whether there is a line after the heading, or it can't be read.
  static var isInUse: Bool {
    // SAFETY: a variadic call without its variable part.
    let descriptor = unsafe open("/proc/swaps", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return true }
    defer { close(descriptor) }
    var text = [UInt8](repeating: 0, count: 4096)
    // SAFETY: the buffer says how long it is.
    let count = unsafe text.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
    guard count > 0 else { return true }
    return text[..<count].split(separator: 0x0A).count > 1
  }
}

extension SecretHeap.State {
  fileprivate mutating func take(units: Int, unit: Int) -> SecretBlock? {
    guard let slab, let index = free.firstIndex(where: { $0.count >= units }) else { return nil }
    let range = free[index].lowerBound..<free[index].lowerBound + units
    if free[index].count == units {
      free.remove(at: index)
    } else {
      free[index] = range.upperBound..<free[index].upperBound
    }
    // SAFETY: the range lies inside the slab, and is no longer free.
    let bytes = unsafe UnsafeMutableRawBufferPointer(
      start: slab.start + range.lowerBound * unit, count: units * unit)
    return unsafe SecretBlock(bytes: bytes, longest: 0)
  }

  fileprivate mutating func release(_ bytes: UnsafeMutableRawBufferPointer, unit: Int) {
    guard let slab, let start = bytes.baseAddress else { return }
    let first = unsafe (start - slab.start) / unit
    var range = first..<first + bytes.count / unit
    var index = free.firstIndex { $0.lowerBound >= range.upperBound } ?? free.endIndex
    if index < free.endIndex, free[index].lowerBound == range.upperBound {
      range = range.lowerBound..<free.remove(at: index).upperBound
    }
    if index > 0, free[index - 1].upperBound == range.lowerBound {
      index -= 1
      range = free.remove(at: index).lowerBound..<range.upperBound
    }
    free.insert(range, at: index)
  }
}
