import GRDB
import Glibc
import Model
import Platform
import Store
import StoreConformance
import Testing

@testable import Vault
@testable import VaultDatabase

/// A vault of which all rows were found to add up is not read again until something writes to its file.
@Suite(.timeLimit(.minutes(1))) struct CheckedVaultTests {
  private let fixture: VaultFixture
  private let ids: [ItemID]

  init() throws {
    fixture = try VaultFixture()
    ids = try fixture.makeVault()
  }

  /// Whether opening the vault reads all its items. The vault is trusted, and its items are there, in both cases.
  private func openingReadsAll(
    _ services: [ExactString] = ["a", "b", "c"], sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> Bool {
    let engine = try fixture.open()
    let isRead = engine.hasReadAll
    #expect(engine.trust == .trusted, sourceLocation: sourceLocation)
    for service in services {
      let found = try engine.items(with: KeychainSamples.generic(service).identity)
      #expect(found.count == 1, sourceLocation: sourceLocation)
      #expect(
        try found.first.flatMap { try engine.item($0.id) } == found.first, sourceLocation: sourceLocation)
    }
    #expect(engine.hasReadAll == isRead, sourceLocation: sourceLocation)
    #expect(try engine.items().count == services.count, sourceLocation: sourceLocation)
    #expect(engine.hasReadAll, sourceLocation: sourceLocation)
    return isRead
  }

  private var mark: String {
    fixture.state + "/" + (names(in: fixture.state).first { $0.hasSuffix(".checked") } ?? "")
  }

  @Test func vaultThatNothingHasChangedIsNotReadAgain() throws {
    #expect(try !openingReadsAll())
    #expect(try !openingReadsAll())
  }

  @Test func ownChangesAreFollowed() throws {
    try fixture.open().set(ids[0], [1, 2])
    #expect(try !openingReadsAll())
    do {
      let engine = try fixture.open()
      _ = try engine.add(KeychainSamples.generic("d"), "new")
      try engine.remove([ids[1]])
      // The log is not empty yet.
      #expect(try fixture.open().hasReadAll)
    }
    #expect(try !openingReadsAll(["a", "c", "d"]))
  }

  @Test func changesOfAnotherProcessAreReadOnce() throws {
    do {
      let (engine, other) = (try fixture.open(), try fixture.open())
      try other.set(ids[0], [1])
      try engine.set(ids[1], [2])
      withExtendedLifetime((engine, other)) {}
    }
    #expect(try openingReadsAll())
    #expect(try !openingReadsAll())
    do {
      let engine = try fixture.open()
      try fixture.open().set(ids[0], [2])
      _ = try engine.refresh()
      try engine.set(ids[1], [3])
    }
    #expect(try !openingReadsAll())
  }

  @Test func rowThatIsPutBackIsFound() throws {
    let id = fixture.literal(ids[0])
    try fixture.edit("CREATE TABLE kept AS SELECT * FROM item WHERE uuid = \(id)")
    try fixture.edit("DROP TABLE kept")
    #expect(try openingReadsAll())
    try fixture.edit("DELETE FROM item WHERE uuid = \(id)")
    guard case .distrusted = try fixture.open().trust else {
      Issue.record("trusted")
      return
    }
    // Nor does it count as checked afterwards.
    guard case .distrusted = try fixture.open().trust else {
      Issue.record("trusted")
      return
    }
  }

  /// With the times of before, which any program can set.
  @Test func fileThatIsWrittenOverInPlaceIsReadAgain() throws {
    let before = try #require(try Files.status(fixture.database))
    let bytes = contents(of: fixture.database)
    do {
      let file = try Descriptor(fixture.database, .writing)
      try file.write(bytes)
      var times = [timespec(), timespec()]
      for index in times.indices {
        times[index].tv_sec = Int(before.modified.seconds)
        times[index].tv_nsec = Int(before.modified.nanoseconds)
      }
      try #require(unsafe futimens(file.number, times) == 0)
    }
    #expect(try #require(try Files.status(fixture.database)).modified == before.modified)
    #expect(try openingReadsAll())
    #expect(try !openingReadsAll())
  }

  @Test func copyOfTheVaultIsReadAgain() throws {
    try fixture.restore(fixture.snapshot())
    #expect(try openingReadsAll())
    #expect(try !openingReadsAll())
  }

  @Test(arguments: [0, 8, 24, 40, 80, -1]) func damagedMarkCountsAsNone(offset: Int) throws {
    var bytes = contents(of: mark)
    try #require(!bytes.isEmpty)
    bytes[offset < 0 ? bytes.count - 1 : offset] ^= 1
    try write(bytes, to: mark)
    #expect(try openingReadsAll())
    #expect(try !openingReadsAll())
    try write([], to: mark)
    #expect(try openingReadsAll())
    unsafe unlink(mark)
    #expect(try openingReadsAll())
  }

  /// A vault that can't be read as a whole is said to be damaged each time.
  @Test func damagedItemIsReportedEachTime() throws {
    try fixture.edit(
      "UPDATE item SET sealed = zeroblob(length(sealed)) WHERE uuid = \(fixture.literal(ids[0]))")
    for _ in 0..<2 {
      let engine = try fixture.open()
      #expect(engine.hasReadAll)
      #expect(engine.problems().contains { $0.subject.hasPrefix("item ") })
      #expect(failure { _ = try engine.item(ids[0]) }?.kind == "damaged")
    }
  }
}

extension VaultEngine {
  fileprivate var hasReadAll: Bool { vault.use { $0.session?.isRead ?? false } }
}
