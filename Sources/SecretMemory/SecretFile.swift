import CSystem
import Glibc

/// A secret as a file in memory (memfd_create(2)), for a program that takes a path or a descriptor.
///
/// It has no name on any disk, neither content nor length can be changed (F_ADD_SEALS of fcntl(2)), and its mode is 0400. Its
/// pages are locked as long as this object lives: then no swap has them. A program that has the descriptor, and every other
/// one of the same user that may trace that program, can read it.
public final class SecretFile: Sendable {
  /// Why there is no such file.
  public enum Failure: Error {
    /// The system grants no more locked memory: so many bytes of RLIMIT_MEMLOCK are needed, and so many there are.
    case lockedMemory(needed: UInt64, limit: UInt64)
    /// errno(3) of another call.
    case system(errno: Int32)
  }

  /// The descriptor, which is closed with the object and when a program is executed. Open for reading and writing, as a seal
  /// needs it; a program that opens it again by /proc/self/fd gets a position of its own.
  public let descriptor: Int32
  private let mapping: Mapping

  // SAFETY: the address is only given back, by `deinit`.
  @safe private struct Mapping: @unchecked Sendable {
    var start: UnsafeMutableRawPointer?
    var length: Int
  }

  /// A file with these bytes; the position is at its start.
  public init(_ bytes: Span<UInt8>) throws(Failure) {
    let file = unsafe linux_memory_file("keyhole")
    guard file >= 0 else { throw .system(errno: errno) }
    do throws(Failure) {
      try Self.fill(file, bytes)
      mapping = try Self.lock(file, bytes.count)
      descriptor = file
    } catch {
      close(file)
      throw error
    }
  }

  deinit {
    if let start = unsafe mapping.start { unsafe munmap(start, mapping.length) }
    close(descriptor)
  }

  private static func fill(_ file: Int32, _ bytes: Span<UInt8>) throws(Failure) {
    let isWritten = unsafe bytes.withUnsafeBytes { bytes in
      var written = 0
      while written < bytes.count {
        // SAFETY: `written` lies inside the buffer.
        let count = unsafe pwrite(
          file, bytes.baseAddress.map { unsafe $0 + written }, bytes.count - written, written)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return false }
        written += count
      }
      return true
    }
    guard isWritten, fchmod(file, 0o400) == 0, linux_seal(file) == 0 else { throw .system(errno: errno) }
  }

  private static func lock(_ file: Int32, _ count: Int) throws(Failure) -> Mapping {
    guard count > 0 else { return unsafe Mapping(start: nil, length: 0) }
    _ = LockedMemoryLimit.bytes
    let start = unsafe mmap(nil, count, PROT_READ, MAP_SHARED, file, 0)
    guard unsafe start != MAP_FAILED else { throw .system(errno: errno) }
    unsafe madvise(start, count, MADV_DONTDUMP)
    guard unsafe mlock(start, count) == 0 || SecretHeap.shared.mayStayUnlocked else {
      LockedMemoryLimit.noteRefusal()
      unsafe munmap(start, count)
      throw .lockedMemory(
        needed: LockedMemoryLimit.used + UInt64(clamping: count) + 4096, limit: LockedMemoryLimit.bytes)
    }
    return unsafe Mapping(start: start, length: count)
  }
}

extension LockedMemoryLimit {
  /// The memory that the process has locked: VmLck of proc_pid_status(5), in bytes.
  package static var used: UInt64 {
    // SAFETY: a variadic call without its variable part.
    let file = unsafe open("/proc/self/status", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return 0 }
    defer { close(file) }
    var text = [UInt8](repeating: 0, count: 4096)
    // SAFETY: the buffer says how long it is.
    let count = unsafe text.withUnsafeMutableBytes { unsafe read(file, $0.baseAddress, $0.count) }
    for line in text.prefix(max(0, count)).split(separator: 0x0A) where line.starts(with: "VmLck:".utf8) {
      let digits = line.filter { (0x30...0x39).contains($0) }
      return (UInt64(String(decoding: digits, as: UTF8.self)) ?? 0).multipliedReportingOverflow(by: 1024)
        .partialValue
    }
    return 0
  }
}
