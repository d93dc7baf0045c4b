import Glibc

@testable import Fuse

/// Two files of bytes in `memfd_secret` memory: `bounced` answers as one must, `direct` as one must not.
final class SecretFileSystem: MemoryFileSystem, @unchecked Sendable {
  enum Failure: Error {
    case noSecretMemory
  }

  private let address: UInt
  private let byteCount: Int

  init(byteCount: Int) throws {
    // `syscall` is variadic, but on Linux's 64-bit platforms that passes integers as a plain call does.
    let call = cFunction("syscall", as: (@convention(c) (Int, Int) -> Int).self)
    let descriptor = Int32(call(447, 0))
    guard descriptor >= 0, ftruncate(descriptor, byteCount) == 0 else { throw Failure.noSecretMemory }
    defer { close(descriptor) }
    let memory = unsafe mmap(nil, byteCount, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0)
    guard let memory = unsafe memory, unsafe memory != MAP_FAILED else { throw Failure.noSecretMemory }
    unsafe memset(memory, 0x5A, byteCount)
    address = UInt(bitPattern: memory)
    self.byteCount = byteCount
    super.init()
    for name in ["bounced", "direct"] { _ = add(Array(name.utf8)) }
  }

  deinit { unsafe munmap(UnsafeMutableRawPointer(bitPattern: address), byteCount) }

  override func read(
    _ node: NodeID, handle: FileHandle, offset: Int, size: Int, origin: ReadOrigin, request: Request,
    reply: consuming DataReply
  ) {
    guard let start = unsafe UnsafeRawPointer(bitPattern: address), offset < byteCount else {
      reply.succeed(Span<UInt8>())
      return
    }
    let bytes = unsafe UnsafeRawBufferPointer(start: start + offset, count: byteCount - offset)
    let span = unsafe Span<UInt8>(_unsafeBytes: bytes)
    if node.rawValue == 2 { reply.succeed(secret: span) } else { reply.succeed(span) }
  }
}
