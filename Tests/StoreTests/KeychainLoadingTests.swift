import Dispatch
import Model
import SecretMemory
import StoreConformance
import Synchronization
import Testing

@testable import Store

/// A store on a keychain that is read by pages.
@Suite(.timeLimit(.minutes(1))) struct KeychainLoadingTests {
  let memory = MemoryKeychain()
  let elsewhere: MemoryKeychain
  let gate = Gate()
  let engine: PagedMemory
  let store: KeychainStore
  var log: ChangeLog
  let ids: [ItemID]

  init() throws {
    elsewhere = MemoryKeychain(sharing: memory)
    ids = try (0..<5).map { [elsewhere] in
      try elsewhere.add(KeychainSamples.generic(ExactString("s\($0)")), "1").id
    }
    engine = PagedMemory(memory, gate: gate)
    store = KeychainStore(engine: engine)
    log = ChangeLog(store.feed)
  }

  private func identity(_ number: Int) -> ItemIdentity {
    KeychainSamples.generic(ExactString("s\(number)")).identity
  }

  /// Every page may be read, and the next reading too.
  private func letAllPass() { gate.letPass(100) }

  private func present() throws -> Set<Item> { Set(try MemoryKeychain(sharing: memory).items()) }

  @Test func singleItemsAreUsedWhileNoPageWasRead() throws {
    try store.beginLoading()
    #expect(!store.isLoaded && store.isLoading)
    #expect(try store.item(with: identity(3))?.id == ids[3])
    #expect(try store.item(with: identity(9)) == nil)
    #expect(try KeychainSamples.bytes(store.secret(of: ids[3])) == Array("1".utf8))
    try store.update([ids[3]]) { item throws(StoreError) in item.label = "l" }
    try store.add(KeychainSamples.generic("new"), secret: KeychainSamples.secret("2"))
    try store.remove([ids[4]])
    #expect(try store.item(ids[3])?.label == "l")
    #expect(!store.isLoaded, "nothing has waited")
    letAllPass()
    try store.load()
    #expect(!store.isLoading)
    #expect(try store.read { Set($0.all) } == present())
    #expect(engine.readings == 1)
  }

  @Test func allThatNeedAllItemsWaitForOneReading() throws {
    let counts = Mutex<[Int]>([])
    let group = DispatchGroup()
    for _ in 0..<4 {
      DispatchQueue(label: "reader").async(group: group) { [store] in
        let count = try? store.read { $0.count }
        counts.withLock { $0.append(count ?? -1) }
      }
    }
    letAllPass()
    group.wait()
    #expect(counts.withLock { $0 } == [5, 5, 5, 5])
    #expect(engine.readings == 1)
  }

  @Test func readingThatIsStoppedEndsWithItsPage() throws {
    let failures = Mutex<[StoreError?]>([])
    let group = DispatchGroup()
    try store.beginLoading()
    for _ in 0..<2 {
      DispatchQueue(label: "reader").async(group: group) { [store] in
        let failure: StoreError?
        do throws(StoreError) {
          try store.load()
          failure = nil
        } catch {
          failure = error
        }
        failures.withLock { $0.append(failure) }
      }
    }
    store.stopLoading()
    // The first page, and that of a reader that comes after the end.
    gate.letPass(1)
    group.wait()
    let stopped = StoreError.unreachable(reason: "the mount ends")
    #expect(failures.withLock { $0 } == [stopped, stopped])
    #expect(!store.isLoaded && !store.isLoading)
    #expect(try store.item(with: identity(3))?.id == ids[3])
  }

  @Test func folderIsKnownWithItsFirstItem() throws {
    let first = try #require(try MemoryKeychain(sharing: memory).items().first)
    try store.beginLoading()
    gate.letPass(1)
    #expect(try store.hasFolder(first.identity.folder, of: .generic))
    try store.add(KeychainSamples.generic("new"), secret: KeychainSamples.secret("2"))
    #expect(try store.hasFolder("new", of: .generic))
    #expect(!store.isLoaded)
    letAllPass()
    #expect(try !store.hasFolder("nobody", of: .generic))
    #expect(store.isLoaded)
  }

  @Test mutating func changesOfOthersMeanwhileArePublishedOnce() async throws {
    try store.beginLoading()
    gate.letPass(2)
    try elsewhere.set(ids[0], Array("longer".utf8))
    try elsewhere.remove([ids[1]])
    let added = try elsewhere.add(KeychainSamples.generic("added"), "1")
    letAllPass()
    try store.load()
    try store.refresh()
    #expect(
      Set(await log.next()) == [
        Change(.modified, .item(ids[0], identity(0)), origin: .external),
        Change(.deleted, .item(ids[1], identity(1)), origin: .external),
        Change(.created, .item(added.id, added.identity), origin: .external),
      ])
    #expect(try store.read { Set($0.all) } == present())
  }

  @Test mutating func ownChangesMeanwhileArePublishedOnce() async throws {
    try store.beginLoading()
    gate.letPass(2)
    let added = try store.add(KeychainSamples.generic("added"), secret: KeychainSamples.secret("2"))
    try store.update([ids[0]]) { item throws(StoreError) in item.label = "own" }
    try store.remove([ids[1]])
    #expect(await log.next().map(\.origin) == [.local, .local, .local])
    // Others change the same items.
    try elsewhere.remove([added.id])
    _ = try elsewhere.update([ids[0]]) { item throws(StoreError) in item.label = "theirs" }
    letAllPass()
    try store.load()
    #expect(
      Set(await log.next()) == [
        Change(.attributes, .item(ids[0], identity(0)), origin: .external),
        Change(.deleted, .item(added.id, added.identity), origin: .external),
      ])
    #expect(try store.read { Set($0.all) } == present())
  }

  @Test mutating func equalSecretMeanwhileIsNoNews() async throws {
    try store.beginLoading()
    try store.rewrite(ids[0], readingSecret: true) { _, _ in }
    #expect(await log.next() == [])
    letAllPass()
    try store.load()
    #expect(await log.next() == [])
  }

  @Test mutating func readingThatWasInterruptedIsBegunAgain() async throws {
    engine.end(with: [.interrupted, .interrupted, nil])
    letAllPass()
    try store.load()
    #expect(engine.readings == 3)
    #expect(try store.read { $0.count } == 5)
    #expect(await log.next() == [Change(.overflow, .everything, origin: .external)])
  }

  @Test func readingThatFailsIsTriedAgainByTheNextCall() throws {
    engine.end(with: [.unreachable(reason: "for the test")])
    letAllPass()
    #expect(throws: StoreError.unreachable(reason: "for the test")) { try store.load() }
    #expect(!store.isLoading && !store.isLoaded)
    #expect(try store.read { $0.count } == 5)
    #expect(engine.readings == 2)
  }

  @Test mutating func whatAComparisonFindsIsPublished() async throws {
    letAllPass()
    try store.load()
    engine.findOnVerification()
    try elsewhere.remove([ids[1]])
    store.verify()
    #expect(engine.verifications == 1)
    #expect(await log.next() == [Change(.deleted, .item(ids[1], identity(1)), origin: .external)])
  }
}

/// Changes by name are published as changes of everything are.
@Suite(.timeLimit(.minutes(1))) struct KeychainNewsTests {
  @Test func eventsAreTheSameWithEverything() async throws {
    let memory = MemoryKeychain()
    let elsewhere = MemoryKeychain(sharing: memory)
    let byName = KeychainStore(engine: MemoryKeychain(sharing: memory))
    let everything = KeychainStore(engine: Everything(MemoryKeychain(sharing: memory)))
    var logs = [ChangeLog(byName.feed), ChangeLog(everything.feed)]
    try byName.load()
    try everything.load()
    var present: [ItemID] = []
    for round in 0..<200 {
      for step in 0...round % 4 {
        let name = ExactString("\(round % 7) \(step)")
        switch (round + step) % 5 {
        case 0, 1:
          if let item = try? elsewhere.add(KeychainSamples.generic(name), "1") { present.append(item.id) }
        case 2:
          if let id = present.randomElement() { try elsewhere.set(id, [UInt8](repeating: 1, count: round)) }
        case 3:
          guard let id = present.randomElement() else { continue }
          _ = try? elsewhere.update([id]) { item throws(StoreError) in
            item.identity = KeychainSamples.generic(name).identity
          }
        default:
          present.shuffle()
          if let id = present.popLast() { try elsewhere.remove([id]) }
        }
      }
      try byName.refresh()
      try everything.refresh()
      let (left, right) = (await logs[0].next(), await logs[1].next())
      #expect(Set(left) == Set(right) && left.count == right.count)
      #expect(try byName.read { Set($0.all) } == everything.read { Set($0.all) })
    }
  }
}

/// Reports everything where something has changed.
private struct Everything: KeychainEngine {
  let memory: MemoryKeychain
  init(_ memory: MemoryKeychain) { self.memory = memory }

  var name: String { memory.name }
  func items() throws(StoreError) -> [Item] { try memory.items() }
  func changes() throws(StoreError) -> ExternalChanges {
    if case .none = try memory.changes() { return .none }
    return .everything(try memory.items())
  }
  func secret(of item: ItemID) throws(StoreError) -> SecretBytes { try memory.secret(of: item) }
  func add(_ item: Item, secret: borrowing SecretBytes) throws(StoreError) -> Item {
    try memory.add(item, secret: secret)
  }
  func update(
    _ items: [ItemID], _ body: (inout Item) throws(StoreError) -> Void
  ) throws(StoreError) -> [Item] { try memory.update(items, body) }
  func rewrite(
    _ item: ItemID, readingSecret: Bool,
    _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item { try memory.rewrite(item, readingSecret: readingSecret, body) }
  func remove(_ items: [ItemID]) throws(StoreError) { try memory.remove(items) }
  func synchronize() {}
  func room() -> DiskRoom? { nil }
  func problems() -> [Problem] { [] }
}
