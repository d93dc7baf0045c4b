import Glibc
import Model
import Store
import StoreConformance
import Testing

@testable import Vault

/// The events of a file, by inotify(7).
struct FileEvents: ~Copyable {
  private let descriptor: Int32

  init(_ path: String) throws {
    descriptor = inotify_init1(Int32(O_CLOEXEC | O_NONBLOCK))
    try #require(descriptor >= 0)
    try #require(unsafe inotify_add_watch(descriptor, path, UInt32(IN_MODIFY | IN_ATTRIB)) >= 0)
  }

  deinit { close(descriptor) }

  /// Waits until `condition` holds, evaluated after each event. False: twenty seconds went by without one.
  func wait(until condition: () -> Bool) -> Bool {
    var events = [UInt8](repeating: 0, count: 4096)
    while !condition() {
      var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      guard unsafe poll(&entry, 1, 20_000) > 0 else { return false }
      while unsafe read(descriptor, &events, events.count) > 0 {}
    }
    return true
  }
}

/// The two files that the README names are the whole vault, also while it is open.
@Suite(.timeLimit(.minutes(1))) struct VaultCopyTests {
  private func copy(_ fixture: VaultFixture) throws -> VaultFixture {
    let other = try VaultFixture()
    try #require(unsafe mkdir(other.directory, 0o700) == 0)
    for (from, to) in [(fixture.database, other.database), (fixture.key, other.key)] {
      try write(contents(of: from), to: to)
    }
    return other
  }

  @Test func secondsAfterTheLastCommitTheTwoFilesAreTheVault() throws {
    let fixture = try VaultFixture()
    let engine = try fixture.open()
    let item = try engine.add(KeychainSamples.generic("a"), "s3cret")
    let log = fixture.database + "-wal"
    #expect(!contents(of: log).isEmpty, "the log has what was stored")
    let events = try FileEvents(log)
    #expect(events.wait { contents(of: log).isEmpty })
    let copy = try copy(fixture)
    let other = try copy.open()
    #expect(try other.items() == [item])
    #expect(try other.bytes(of: item.id) == Array("s3cret".utf8))
    #expect(try engine.changes().items() == nil, "the engine's own checkpoint is no news")
  }

  @Test func whatAnotherProcessLeftInTheLogIsBroughtIn() throws {
    let fixture = try VaultFixture()
    let engine = try fixture.open()
    _ = try engine.items()
    let other = try fixture.open()
    let item = try other.add(KeychainSamples.generic("a"), "1")
    #expect(try engine.changes().items() == [item])
    let log = fixture.database + "-wal"
    let events = try FileEvents(log)
    #expect(events.wait { contents(of: log).isEmpty })
    #expect(try copy(fixture).open().items() == [item])
  }
}
