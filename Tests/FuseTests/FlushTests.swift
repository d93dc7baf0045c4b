import Glibc
import Synchronization
import Testing

@testable import Fuse

extension AllTests {
  @Suite struct FlushTests {
    /// Opens readers with `noFlush`, as a file system may that has nothing to commit at their close.
    private final class ReaderFileSystem: MemoryFileSystem, @unchecked Sendable {
      override func open(_ node: NodeID, flags: Int32, request: Request, reply: consuming OpenReply) {
        let options: OpenOptions = flags & O_ACCMODE == O_RDONLY ? [.directIO, .noFlush] : .directIO
        reply.succeed(FileHandle(rawValue: node.rawValue), options: options)
      }
    }

    /// The flag is of one handle: it must not end the flushes of others, as an ENOSYS would.
    @Test func handleWithoutFlushSavesItsOwnOnly() throws {
      let fileSystem = ReaderFileSystem("a")
      func flushes() -> Int { fileSystem.state.withLock { $0.flushes } }
      try withMount(fileSystem) { path, _ in
        _ = try Client.contents(path + "/a")
        #expect(flushes() == 0)
        try Client.put(Array("text".utf8), in: path + "/a", 0)
        #expect(flushes() == 1)
        #expect(try Client.contents(path + "/a") == Array("text".utf8))
        #expect(flushes() == 1)
      }
    }
  }
}
