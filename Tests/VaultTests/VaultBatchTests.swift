import Glibc
import Model
import Platform
import SecretMemory
import Store
import StoreConformance
import Synchronization
import Testing

@testable import Vault

/// Batches that are applied beside other calls.
@Suite(.timeLimit(.minutes(1))) struct VaultBatchTests {
  private static func changes(_ count: Int) -> [ItemChange] {
    (0..<count).map { .add(KeychainSamples.generic(ExactString("n\($0)"))) }
  }

  private static func spool(_ engine: VaultEngine, _ count: Int) throws -> any SecretSpool {
    let spool = try engine.makeSpool()
    for index in 0..<count { try spool.append(KeychainSamples.secret("batch secret \(index)")) }
    return spool
  }

  @Test func readingGoesOnBesideTheTransaction() throws {
    let fixture = try VaultFixture()
    let engine = try fixture.open()
    let present = try engine.add(KeychainSamples.generic("a"), "one")
    let spool = try Self.spool(engine, 20)
    var seen: Set<Int> = []
    let stored = try engine.apply(Self.changes(20), from: spool) { () throws(StoreError) in
      // On this thread: a lock that the transaction held would never be had.
      #expect((try? engine.bytes(of: present.id)) == Array("one".utf8))
      seen.insert(try engine.items().count)
    }
    #expect(seen == [1] && stored.count == 20)
    #expect(try engine.changes().items()?.count == 21)
    #expect(try engine.bytes(of: stored[7].id) == Array("batch secret 7".utf8))
    #expect(engine.trust == .trusted && engine.problems().isEmpty)
    // The end of the second connection has not dropped the locks of the first one.
    #expect(fixture.isLocked)
    // The engine itself goes on writing, and another process finds the vault whole.
    try engine.set(present.id, Array("two".utf8))
    #expect(try fixture.open().items().count == 21)
  }

  @Test func aLockEndsIt() throws {
    let fixture = try VaultFixture()
    let engine = try fixture.open()
    let spool = try Self.spool(engine, 20)
    let isLocked = Atomic(false)
    var count = 0
    #expect(throws: StoreError.locked) {
      _ = try engine.apply(Self.changes(20), from: spool) { () throws(StoreError) in
        count += 1
        guard count == 5 else { return }
        let thread = WaitingThreads()
        #expect(
          thread.run {
            try? engine.lock()
            isLocked.store(true, ordering: .releasing)
          })
        // It waits for the batch, which goes on until it asks.
        while engine.lockState == .open { sched_yield() }
      }
    }
    #expect(count < 20)
    while !isLocked.load(ordering: .acquiring) { sched_yield() }
    #expect(throws: StoreError.locked) {
      _ = try engine.apply(Self.changes(20), from: spool) { () throws(StoreError) in }
    }
    try engine.unlock(KeychainSamples.secret(""))
    #expect(try engine.items().isEmpty)
    #expect(try engine.apply(Self.changes(20), from: spool) { () throws(StoreError) in }.count == 20)
  }

  /// The remains of a process that is killed now, and the content of its file.
  @Test func theSpoolHasNoNameAndNoPlaintext() throws {
    let fixture = try VaultFixture()
    let engine = try fixture.open()
    let before = names(in: fixture.directory)
    let spool = try Self.spool(engine, 50)
    #expect(names(in: fixture.directory) == before)
    let content = try #require(Self.contentOfUnnamedFile(in: fixture.directory))
    #expect(content.count > 50 * 14)
    let plain = Array("batch secret".utf8)
    #expect(!content.indices.contains { content[$0...].starts(with: plain) })
    #expect(KeychainSamples.bytes(try spool.secret(at: 49)) == Array("batch secret 49".utf8))
    #expect(throws: StoreError.notFound) { _ = try spool.secret(at: 50) }
  }

  private static func contentOfUnnamedFile(in folder: String) -> [UInt8]? {
    for name in names(in: "/proc/self/fd") {
      var target = [CChar](repeating: 0, count: 4096)
      let count = unsafe readlink("/proc/self/fd/\(name)", &target, target.count)
      let path = String(decoding: target.prefix(max(0, count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
      guard path.hasPrefix(folder + "/"), path.hasSuffix(" (deleted)"), let number = Int32(name) else {
        continue
      }
      var content = [UInt8](repeating: 0, count: 1 << 20)
      let length = unsafe content.withUnsafeMutableBytes { unsafe pread(number, $0.baseAddress, $0.count, 0) }
      return Array(content.prefix(max(0, length)))
    }
    return nil
  }
}
