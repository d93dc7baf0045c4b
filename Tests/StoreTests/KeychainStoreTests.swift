import Dispatch
import Model
import SecretMemory
import StoreConformance
import Synchronization
import Testing

@testable import Store

@Suite(.timeLimit(.minutes(1))) struct KeychainStoreTests {
  let engine = MemoryKeychain()
  let elsewhere: MemoryKeychain
  let store: KeychainStore
  var log: ChangeLog

  init() {
    elsewhere = MemoryKeychain(sharing: engine)
    store = KeychainStore(engine: engine)
    log = ChangeLog(store.feed)
  }

  private func add(_ service: ExactString, _ secret: String = "secret") throws -> Item {
    try store.add(KeychainSamples.generic(service), secret: KeychainSamples.secret(secret))
  }

  private func rewrite(_ id: ItemID, _ secret: String) throws -> Item {
    let new = try KeychainSamples.secret(secret)
    return try store.rewrite(id, readingSecret: false) { item, present throws(StoreError) in
      do { present = try SecretBytes(copying: new) } catch { throw .outOfMemory }
      item.modified.seconds += 1
    }
  }

  @Test mutating func ownChangesAreLocalNews() async throws {
    let item = try add("a")
    _ = try rewrite(item.id, "new")
    try store.update([item.id]) { $0.label = "label" }
    try store.update([item.id]) { $0.identity = .generic(service: "b", account: "me") }
    try store.remove([item.id])
    let (old, new) = (item.identity, ItemIdentity.generic(service: "b", account: "me"))
    #expect(
      await log.next() == [
        Change(.created, .item(item.id, old), origin: .local),
        Change(.modified, .item(item.id, old), origin: .local),
        Change(.attributes, .item(item.id, old), origin: .local),
        Change(.moved, .item(item.id, new), previous: .item(item.id, old), origin: .local),
        Change(.deleted, .item(item.id, new), origin: .local),
      ])
  }

  @Test mutating func updateThatChangesNothingIsNoNews() async throws {
    let item = try add("a")
    _ = await log.next()
    try store.update([item.id]) { _ in }
    #expect(await log.next() == [])
  }

  @Test func indexFollowsEveryChange() throws {
    let item = try add("a", "12345")
    #expect(try store.read { $0[item.id]?.size } == 5)
    #expect(try store.read { $0[item.identity].map(\.id) } == [item.id])
    _ = try rewrite(item.id, "1")
    try store.update([item.id]) { $0.identity = .generic(service: "b", account: "me") }
    try store.read { index in
      #expect(index[item.id]?.size == 1 && index.count == 1)
      #expect(index[item.identity].isEmpty && !index.hasFolder("a", of: .generic))
      #expect(index.folders(of: .generic) == ["b"] && index.items(in: "b", of: .generic).count == 1)
    }
    try store.remove([item.id, item.id])
    #expect(try store.read { $0.count } == 0 && store.read { $0.folders(of: .generic) } == [])
  }

  @Test mutating func changesElsewhereAreNewsOnce() async throws {
    let kept = try elsewhere.add(KeychainSamples.generic("kept"), "1")
    let gone = try elsewhere.add(KeychainSamples.generic("gone"), "1")
    let moved = try elsewhere.add(KeychainSamples.generic("moved"), "1")
    try store.load()
    #expect(await log.next() == [])
    try elsewhere.set(kept.id, Array("longer".utf8))
    try elsewhere.remove([gone.id])
    let new = try elsewhere.add(KeychainSamples.generic("new"), "1")
    let identity = ItemIdentity.generic(service: "elsewhere", account: "me")
    _ = try elsewhere.update([moved.id]) { item throws(StoreError) in item.identity = identity }
    try store.refresh()
    try store.refresh()
    let changes = await log.next()
    #expect(
      Set(changes) == [
        Change(.modified, .item(kept.id, kept.identity), origin: .external),
        Change(.deleted, .item(gone.id, gone.identity), origin: .external),
        Change(.created, .item(new.id, new.identity), origin: .external),
        Change(
          .moved, .item(moved.id, identity), previous: .item(moved.id, moved.identity), origin: .external),
      ])
    #expect(changes.count == 4)
  }

  @Test mutating func attributesElsewhereAreNewsOfTheirOwn() async throws {
    let item = try elsewhere.add(KeychainSamples.generic("a"), "1")
    try store.load()
    _ = try elsewhere.update([item.id]) { item throws(StoreError) in item.label = "x" }
    try store.refresh()
    #expect(await log.next() == [Change(.attributes, .item(item.id, item.identity), origin: .external)])
    _ = try elsewhere.update([item.id]) { item throws(StoreError) in item.label = "x" }
    try store.refresh()
    #expect(await log.next() == [])
  }

  @Test mutating func ownChangeIsNoNewsOfOthers() async throws {
    try store.load()
    _ = try add("a")
    _ = await log.next()
    try store.refresh()
    #expect(await log.next() == [])
  }

  @Test mutating func refreshBeforeTheFirstUseReadsNothing() async throws {
    engine.fail(with: .unreachable(reason: "for the test"))
    try store.refresh()
    #expect(throws: StoreError.unreachable(reason: "for the test")) { try store.load() }
    engine.fail(with: nil)
    try store.load()
    #expect(await log.next() == [])
  }

  @Test(arguments: [AccessFlags.Flag.userPresence, .biometryAny, .devicePasscode])
  func accessFlagsRefuse(flag: AccessFlags.Flag) throws {
    var item = KeychainSamples.generic("a")
    item.access = AccessFlags([flag])
    let id = try engine.add(item, "secret").id
    for refused: () throws -> Void in [
      { _ = try store.secret(of: id) }, { try store.checkAccess(to: id) }, { _ = try rewrite(id, "new") },
    ] {
      #expect { try refused() } throws: { error in
        if case .accessDenied = error as? StoreError { true } else { false }
      }
    }
    #expect(try engine.bytes(of: id) == Array("secret".utf8))
    try store.remove([id])
    #expect(try engine.items().isEmpty)
  }

  @Test func missingItemsAreNotFound() throws {
    let nobody = ItemID(rawValue: "nobody")
    #expect(throws: StoreError.notFound) { _ = try store.secret(of: nobody) }
    #expect(throws: StoreError.notFound) { try store.checkAccess(to: nobody) }
    #expect(throws: StoreError.notFound) { try store.update([nobody]) { $0.label = "x" } }
    try store.remove([nobody])
  }

  @Test mutating func refusedChangeLeavesIndexAndFeed() async throws {
    let item = try add("a")
    _ = try add("b")
    _ = await log.next()
    #expect(throws: StoreError.exists) { _ = try add("a") }
    #expect(throws: StoreError.exists) {
      try store.update([item.id]) { $0.identity = .generic(service: "b", account: "me") }
    }
    engine.fail(with: .noSpace)
    #expect(throws: StoreError.noSpace) { try store.remove([item.id]) }
    engine.fail(with: nil)
    #expect(await log.next() == [])
    #expect(try store.read { $0[item.id] } == item && store.read { $0.count } == 2)
  }

  @Test func manyThreadsAddAndReadAtOnce() throws {
    let failures = Mutex<[String]>([])
    let (store, engine) = (store, engine)
    DispatchQueue.concurrentPerform(iterations: 8) { thread in
      for round in 0..<25 {
        do {
          let secret = try KeychainSamples.secret("\(thread)/\(round)")
          let item = try store.add(
            KeychainSamples.generic(ExactString("\(thread)"), ExactString("\(round)")), secret: secret)
          let read = try store.secret(of: item.id)
          if read != secret { failures.withLock { $0.append("another secret") } }
        } catch { failures.withLock { $0.append("\(error)") } }
      }
    }
    #expect(failures.withLock { $0 } == [])
    #expect(try store.read { $0.count } == 200 && engine.items().count == 200)
    #expect(try Set(store.read { $0.folders(of: .generic) }).count == 8)
  }
}

extension SecretBytes {
  fileprivate static func != (left: borrowing SecretBytes, right: borrowing SecretBytes) -> Bool {
    !(left == right)
  }
}
