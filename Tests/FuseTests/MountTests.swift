import Glibc
import Platform
import Synchronization
import Testing

@testable import Fuse

extension AllTests {
  @Suite struct EndToEndTests {
    @Test func filesAreCreatedWrittenReadAndRenamed() throws {
      try withMount(MemoryFileSystem()) { path, _ in
        try Client.put(Array("hello".utf8), in: path + "/a")
        #expect(try Client.contents(path + "/a") == Array("hello".utf8))
        try Client.rename(path + "/a", path + "/b")
        #expect(try Client.contents(path + "/b") == Array("hello".utf8))
        #expect(throws: Errno.ENOENT) { try Client.size(path + "/a") }
        #expect(try Client.size(path + "/b") == 5)
      }
    }

    @Test func listingsOfAnyLengthAreWhole() throws {
      let fileSystem = MemoryFileSystem()
      let names = (0..<3000).map { "entry-number-\($0)" }
      for name in names { _ = fileSystem.add(Array(name.utf8)) }
      try withMount(fileSystem) { path, _ in
        #expect(try Client.names(path) == names)
        // Read again with each node looked at in between, so that names come with their nodes.
        for name in names.prefix(500) { _ = try Client.size(path + "/" + name) }
        #expect(try Client.names(path) == names)
      }
    }

    @Test func extendedAttributesFitOrSayTheirLength() throws {
      try withMount(MemoryFileSystem("a")) { path, _ in
        try Client.setAttribute(path + "/a", "user.color", Array("green".utf8))
        try Client.setAttribute(path + "/a", "user.empty", [])
        #expect(try Client.attribute(path + "/a", "user.color") == Array("green".utf8))
        #expect(try Client.attribute(path + "/a", "user.color", room: 0).count == 5)
        #expect(throws: Errno.ERANGE) { try Client.attribute(path + "/a", "user.color", room: 4) }
        #expect(throws: Errno.ENODATA) { try Client.attribute(path + "/a", "user.none") }
        #expect(try Client.attribute(path + "/a", "user.empty").isEmpty)
        #expect(try Client.attributeNames(path + "/a") == "user.color\0user.empty\0")
      }
    }

    @Test func truncationArrivesInOpen() throws {
      let fileSystem = MemoryFileSystem("a")
      try withMount(fileSystem) { path, _ in
        try Client.put(Array("a long text".utf8), in: path + "/a", 0)
        try Client.put(Array("short".utf8), in: path + "/a", O_TRUNC)
        #expect(try Client.contents(path + "/a") == Array("short".utf8))
      }
      let flags = fileSystem.state.withLock { $0.openFlags }
      #expect(flags.map { $0 & O_TRUNC != 0 } == [false, true, false])
    }

    @Test func namesArriveAsTheyAre() throws {
      let fileSystem = MemoryFileSystem()
      let names: [[UInt8]] = [
        [UInt8](repeating: 0x61, count: 300), [0xFF, 0xFE], Array("two\nlines".utf8),
        [0x2E, 0x2E, 0xC0, 0xAF],
        [UInt8](repeating: 0x62, count: 4000),
      ]
      try withMount(fileSystem) { path, _ in
        for name in names {
          #expect(throws: Errno.ENOENT) { try Client.open(Array((path + "/").utf8) + name, O_RDONLY) }
        }
      }
      #expect(fileSystem.state.withLock { $0.lookups } == names)
    }

    @Test func lookupsAreTakenBack() throws {
      let fileSystem = MemoryFileSystem("a")
      try withMount(fileSystem) { path, session in
        _ = try Client.size(path + "/a")
        #expect(session.invalidator.invalidateEntry(Array("a".utf8).span, in: .root) == nil)
        // The kernel forgets before it asks again, though in a message of its own.
        _ = try Client.size(path + "/a")
        session.unmount()
      }
      let forgotten = fileSystem.state.withLock { $0.forgotten[2] ?? 0 }
      #expect(forgotten <= 2)
    }

    @Test func mountedAgainAndAgain() throws {
      for _ in 0..<20 {
        let path = try withMount(MemoryFileSystem("a")) { path, _ in
          let names = try Client.names(path)
          #expect(names == ["a"])
          return path
        }
        #expect(!isMounted(path))
      }
    }

    /// Keeps an invalidator, and says when it goes away.
    private final class NotifyingFileSystem: MemoryFileSystem, @unchecked Sendable {
      let invalidator = Mutex<CacheInvalidator?>(nil)
      let gone: Event

      init(gone: Event) {
        self.gone = gone
        super.init()
      }

      deinit { gone.happen() }
    }

    @Test func fileSystemThatKeepsANotifierGoesAwayWithItsSession() throws {
      let gone = Event()
      do {
        let fileSystem = NotifyingFileSystem(gone: gone)
        try withMount(fileSystem) { path, session in
          fileSystem.invalidator.withLock { $0 = session.invalidator }
          _ = try Client.names(path)
        }
      }
      #expect(gone.wait())
    }

    @Test func exitLeavesTheMount() throws {
      let path = try temporaryFolder()
      defer { unsafe rmdir(path) }
      let session = try Session(MemoryFileSystem("a"))
      try session.mount(at: path)
      defer { session.unmount() }
      let ended = Event()
      ThreadID.start {
        try? session.run()
        ended.happen()
      }
      #expect(try Client.names(path) == ["a"])
      session.exit()
      #expect(ended.wait())
      session.unmount()
      #expect(!isMounted(path))
    }

    @Test func unmountBeforeTheMountIsNotForgotten() throws {
      let path = try temporaryFolder()
      defer { unsafe rmdir(path) }
      let session = try Session(MemoryFileSystem())
      session.unmount()
      try session.mount(at: path)
      #expect(!isMounted(path))
      try session.run()
    }

    @Test func unmountFromOutsideEndsTheRun() throws {
      let path = try temporaryFolder()
      defer { unsafe rmdir(path) }
      let session = try Session(MemoryFileSystem())
      try session.mount(at: path)
      let ended = Outcome<SessionError?>()
      ThreadID.start {
        do throws(SessionError) {
          try session.run()
          ended.leave(nil)
        } catch { ended.leave(error) }
      }
      #expect(detach(path))
      #expect(try #require(ended.take()) == nil)
    }

    @Test func errorsSayWhatLibfuseSaid() throws {
      let error = #expect(throws: SessionError.self) {
        _ = try Session(MemoryFileSystem(), options: ["nonsense=1"])
      }
      #expect(error?.step == .create)
      #expect(error?.message.contains("nonsense") == true)
      let session = try Session(MemoryFileSystem())
      #expect(throws: SessionError.self) { try session.mount(at: "/nonexistent/folder") }
    }
  }
}
