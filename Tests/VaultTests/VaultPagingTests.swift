import GRDB
import Model
import SecretMemory
import Store
import StoreConformance
import Testing

@testable import Vault
@testable import VaultDatabase
@testable import VaultRecords

/// A vault of many items: 100 are many here.
struct LargeVault {
  static let many: UInt64 = 100
  let fixture: VaultFixture
  let ids: [ItemID]

  init(_ count: Int = 300) throws {
    fixture = try VaultFixture()
    let engine = try fixture.open()
    ids = try engine.addMany((0..<count).map { ExactString("s\($0)") }).map(\.id)
  }

  func open(_ reading: VaultReading = .fewItems) throws -> VaultEngine {
    let directory = try VaultDirectory(fixture.directory, state: fixture.state)
    return try VaultEngine(directory, .items, .least, reading, many: Self.many)
  }

  /// A vault of which all items were read, as a mount has it.
  func openRead() throws -> VaultEngine {
    let engine = try open(.allItems)
    _ = try engine.items()
    return engine
  }

  func edit(_ statement: String, _ number: Int) throws {
    try fixture.edit(statement.replacing("ID", with: fixture.literal(ids[number])))
  }

  static func identity(_ number: Int) -> ItemIdentity {
    KeychainSamples.generic(ExactString("s\(number)")).identity
  }

  func leaf(of number: Int, _ engine: VaultEngine) throws -> UInt64 {
    try engine.withSession { session throws(StoreError) in
      try session.connection.read { database in
        let manifest = try Manifest.fetch(database, session.keys)
        return manifest.leaves.leaf(of: session.keys.tag(of: Self.identity(number)))
      }
    }
  }

  /// Also than that of a tag of zeros, which is the first.
  func numberOfAnotherLeaf(than number: Int, _ engine: VaultEngine) throws -> Int {
    let others = [0, try leaf(of: number, engine)]
    return try #require(try ids.indices.first { try !others.contains(leaf(of: $0, engine)) })
  }
}

extension VaultEngine {
  /// Adds items in one transaction.
  @discardableResult func addMany(_ services: [ExactString]) throws -> [Item] {
    try apply(services.map { ItemChange.add(KeychainSamples.generic($0)) }) { _ throws(StoreError) in
      do { return try KeychainSamples.secret("secret") } catch { throw .outOfMemory }
    }
  }

  /// The reads of the session itself; another connection counts for itself.
  var counts: ReadCounts {
    get throws { try withSession { session throws(StoreError) in session.keys.counts } }
  }

  func read(during body: () throws -> Void) throws -> (rows: Int, items: Int) {
    let before = try counts
    try body()
    let after = try counts
    return (after.rows - before.rows, after.items - before.items)
  }

  var isDistrusted: Bool {
    if case .distrusted = trust { true } else { false }
  }

  /// Reads all by pages.
  func readPages() throws -> [Item] {
    let reading = try #require(paging).beginReading()
    var items: [Item] = []
    while case let page = try reading.next(), !page.isEmpty { items += page }
    return try reading.finish().items(since: items) ?? items
  }
}

extension [Item] {
  fileprivate func after(_ changes: ExternalChanges) -> Set<Item> { Set(changes.items(since: self) ?? self) }
}

@Suite(.timeLimit(.minutes(2))) struct VaultPagingTests {
  private let vault: LargeVault

  init() throws { vault = try LargeVault() }

  @Test func vaultOfManyItemsIsOpenedWithoutReadingThem() throws {
    let engine = try vault.open()
    #expect(try engine.counts.items == 0)
    #expect(engine.paging != nil && engine.lookup != nil)
    let read = try engine.read { () throws in
      #expect(try engine.lookup?.item(with: LargeVault.identity(7))?.id == vault.ids[7])
    }
    #expect(read.items == 1 && read.rows <= 64)
    #expect(engine.trust == .trusted)
  }

  @Test func vaultOfFewItemsIsReadAtOnce() throws {
    let few = try LargeVault(99).open()
    #expect(try few.counts.items == 99)
    #expect(few.paging == nil && few.lookup == nil)
    #expect(try few.items().count == 99)
  }

  @Test func pagesHaveEveryItemAndTheSessionReadsNone() throws {
    let engine = try vault.open()
    let expected = Set(try vault.openRead().items())
    let read = try engine.read { () throws in #expect(try Set(engine.readPages()) == expected) }
    #expect(read.rows == 0 && read.items == 0)
    #expect(engine.paging == nil && engine.lookup == nil && engine.verification == nil)
    #expect(engine.trust == .trusted)
  }

  @Test func whatHappensMeanwhileIsReportedAtTheEnd() throws {
    let (engine, other) = (try vault.open(), try vault.open())
    let reading = try #require(engine.paging).beginReading()
    var items = try reading.next()
    try other.remove([vault.ids[0]])
    try engine.set(vault.ids[1], [1, 2, 3])
    try other.addMany((0..<500).map { ExactString("new \($0)") })
    #expect(try engine.lookup?.item(vault.ids[1])?.size == 3)
    #expect(try engine.lookup?.item(vault.ids[0]) == nil)
    while case let page = try reading.next(), !page.isEmpty { items += page }
    #expect(items.count == 300, "as they were")
    try other.set(vault.ids[2], [1])
    let present = items.after(try reading.finish())
    #expect(present == Set(try vault.openRead().items()))
    try other.set(vault.ids[3], [1])
    guard case .items(let news) = try engine.changes() else {
      Issue.record("not by name")
      return
    }
    #expect(news.map(\.id) == [vault.ids[3]])
  }

  @Test func lockedVaultIsReadAlso() throws {
    let engine = try vault.open()
    let reading = try #require(engine.paging).beginReading()
    try engine.lock()
    var items: [Item] = []
    while case let page = try reading.next(), !page.isEmpty { items += page }
    _ = try reading.finish()
    #expect(items.count == 300 && engine.lockState == .locked && engine.paging == nil)
    try engine.unlock(SecretBytes())
    #expect(try engine.bytes(of: vault.ids[0]) == Array("secret".utf8))
  }

  @Test func newKeysEndTheReading() throws {
    let engine = try vault.open()
    let reading = try #require(engine.paging).beginReading()
    _ = try reading.next()
    let none = try SecretBytes()
    try vault.open().change(to: .keyFile, none, present: none, cost: .least)
    while try !reading.next().isEmpty {}
    #expect(failure { _ = try reading.finish() }?.kind == "interrupted")
    #expect(try engine.readPages().count == 300)
  }

  @Test func editedVaultIsFoundWhenItIsRead() throws {
    try vault.edit("DELETE FROM item WHERE uuid = ID", 5)
    let engine = try vault.open()
    #expect(engine.trust == .trusted, "not yet known")
    #expect(try engine.readPages().count == 299)
    #expect(engine.isDistrusted && engine.paging == nil)
    #expect(failure { try engine.set(vault.ids[0], [1]) }?.kind == "readOnly")
  }

  @Test func editWhileTheItemsAreReadIsFound() throws {
    let engine = try vault.open()
    let reading = try #require(engine.paging).beginReading()
    while try !reading.next().isEmpty {}
    try vault.edit("UPDATE item SET sealed = zeroblob(length(sealed)) WHERE uuid = ID", 5)
    _ = try reading.finish()
    try #require(engine.verification).verify()
    #expect(engine.damagedEntries.count == 1)
    #expect(try engine.changes().items()?.count == 299)
  }

  @Test func olderCopyIsFoundAtOnce() throws {
    let before = vault.fixture.snapshot()
    try vault.open().set(vault.ids[0], [1])
    try vault.fixture.restore(before)
    let engine = try vault.open()
    #expect(engine.isDistrusted)
    #expect(try engine.readPages().count == 300)
    #expect(engine.isDistrusted)
    #expect(failure { try engine.set(vault.ids[1], [1]) }?.kind == "readOnly")
  }
}
