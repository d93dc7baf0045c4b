import Testing

@testable import Mount

@Suite struct PageCacheTests {
  private var cache = PageCache()

  @Test mutating func firstReaderFindsAnEmptyCache() {
    #expect(cache.open(1, version: 1) == .fresh)
  }

  @Test mutating func readersOfOneValueShareTheCache() {
    _ = cache.open(1, version: 1)
    // Until a handle was closed, it is not known that the kernel has emptied the cache for it.
    #expect(cache.open(1, version: 1) == .fresh)
    _ = cache.close(1)
    #expect(cache.open(1, version: 1) == .kept)
    _ = cache.close(1)
    _ = cache.close(1)
    #expect(cache.open(1, version: 1) == .kept)
  }

  @Test mutating func withdrawnReaderLeavesAFullCache() {
    _ = cache.open(1, version: 1)
    _ = cache.close(1)
    #expect(cache.open(1, version: 2) == .fresh)
    _ = cache.withdraw(1)
    #expect(cache.open(1, version: 2) == .fresh)
  }

  @Test mutating func whoWaitsIsCalledAfterTheLastReader() {
    #expect(cache.wait(for: 1) {} == nil)
    _ = cache.open(1, version: 1)
    _ = cache.open(1, version: 1)
    #expect(cache.isRead(1))
    #expect(cache.wait(for: 1) {} != nil)
    #expect(cache.close(1).isEmpty)
    #expect(cache.withdraw(1).count == 1)
    #expect(!cache.isRead(1))
    #expect(cache.wait(for: 1) {} == nil)
  }

  @Test mutating func readersThatWereWaitedForInVainAreNotWaitedForAgain() throws {
    _ = cache.open(1, version: 1)
    let first = try #require(cache.wait(for: 1) {})
    let second = try #require(cache.wait(for: 1) {})
    // Both wait for the same readers.
    #expect(cache.giveUp(first).count == 2)
    #expect(cache.giveUp(second).isEmpty)
    #expect(cache.wait(for: 1) {} == nil)
    _ = cache.open(1, version: 1)
    #expect(cache.wait(for: 1) {} != nil)
  }

  @Test mutating func laterReaderIsWaitedForOn() throws {
    _ = cache.open(1, version: 1)
    let first = try #require(cache.wait(for: 1) {})
    _ = cache.open(1, version: 1)
    let second = try #require(cache.wait(for: 1) {})
    #expect(cache.giveUp(first).count == 1)
    #expect(cache.close(1).isEmpty)
    #expect(cache.close(1).count == 1)
    #expect(cache.giveUp(second).isEmpty)
  }

  @Test mutating func mappedFileThatIsReadPastTheCacheKeepsOthersOutOfIt() {
    _ = cache.open(1, version: 1)
    _ = cache.close(1)
    cache.beginMapping(1)
    #expect(cache.open(1, version: 1) == .direct)
    cache.forget(1)
    cache.endMapping(1)
    #expect(cache.open(1, version: 1) == .fresh)
    _ = cache.close(1)
    #expect(cache.open(1, version: 1) == .kept)
    // A page that another handle reads while the file is mapped may be the mapping's.
    cache.beginMapping(1)
    _ = cache.close(1)
    cache.endMapping(1)
    #expect(cache.open(1, version: 1) == .fresh)
  }

  @Test mutating func waitThatIsOverIsNotGivenUp() throws {
    _ = cache.open(1, version: 1)
    let wait = try #require(cache.wait(for: 1) {})
    #expect(cache.close(1).count == 1)
    _ = cache.open(1, version: 1)
    #expect(cache.giveUp(wait).isEmpty)
    #expect(cache.wait(for: 1) {} != nil)
  }

  @Test mutating func readerOfAnotherValueGoesPastTheCacheWhileItIsUsed() {
    _ = cache.open(1, version: 1)
    #expect(cache.open(1, version: 2) == .direct)
    _ = cache.open(1, version: 1)
    _ = cache.close(1)
    #expect(cache.open(1, version: 2) == .direct)
    _ = cache.close(1)
    #expect(cache.open(1, version: 2) == .fresh)
    #expect(cache.open(1, version: 1) == .direct)
  }

  @Test mutating func filesHaveCachesOfTheirOwn() {
    _ = cache.open(1, version: 1)
    #expect(cache.open(2, version: 2) == .fresh)
    _ = cache.close(2)
    #expect(cache.open(1, version: 2) == .direct)
  }

  @Test mutating func forgottenFileBeginsAnew() {
    _ = cache.open(1, version: 1)
    _ = cache.close(1)
    cache.forget(1)
    #expect(cache.open(1, version: 1) == .fresh)
  }

  @Test mutating func fileInUseIsNotForgotten() {
    _ = cache.open(1, version: 1)
    cache.forget(1)
    #expect(cache.open(1, version: 2) == .direct)
  }

  @Test mutating func readersOfAGrownValueGoOnTogether() {
    _ = cache.open(1, version: 1)
    _ = cache.open(1, version: 1)
    let some = cache.replace(1, with: 2, for: 1)
    let all = cache.replace(1, with: 2, for: 2)
    #expect(!some && all)
    #expect(cache.open(1, version: 1) == .direct)
    #expect(cache.open(1, version: 2) == .fresh)
  }

  @Test mutating func closingAnUnknownFileChangesNothing() {
    _ = cache.close(1)
    cache.forget(1)
    #expect(cache.open(1, version: 1) == .fresh)
  }

  /// Every reader through the cache reads the value that the cache was filled with.
  @Test mutating func nobodyReadsAnotherValueThroughTheCache() {
    // The value in the kernel's cache; each reader's emptying of it may come any time before it reads or closes.
    var (readers, filled): ([UInt64], UInt64?) = ([], nil)
    var number: UInt64 = 1
    for _ in 0..<5_000 {
      number = number &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      let version = number >> 33 % 3
      guard number >> 40 % 2 == 0 else {
        if readers.popLast() != nil { _ = cache.close(1) }
        continue
      }
      switch cache.open(1, version: version) {
      case .direct: #expect(readers.contains { $0 != version })
      case .fresh:
        #expect(readers.allSatisfy { $0 == version })
        (readers, filled) = (readers + [version], version)
      case .kept:
        #expect(filled == version)
        readers.append(version)
      }
      #expect(readers.allSatisfy { $0 == filled })
    }
  }
}
