import Testing

@testable import Mount

@Suite struct PageCacheTests {
  private var cache = PageCache()

  @Test mutating func firstReaderFindsAnEmptyCache() {
    #expect(cache.open(1, version: 1) == .fresh)
  }

  @Test mutating func readersOfOneValueShareTheCache() {
    _ = cache.open(1, version: 1)
    #expect(cache.open(1, version: 1) == .kept)
    cache.close(1)
    cache.close(1)
    #expect(cache.open(1, version: 1) == .kept)
  }

  @Test mutating func readerOfAnotherValueGoesPastTheCacheWhileItIsUsed() {
    _ = cache.open(1, version: 1)
    #expect(cache.open(1, version: 2) == .direct)
    #expect(cache.open(1, version: 1) == .kept)
    cache.close(1)
    #expect(cache.open(1, version: 2) == .direct)
    cache.close(1)
    #expect(cache.open(1, version: 2) == .fresh)
    #expect(cache.open(1, version: 1) == .direct)
  }

  @Test mutating func filesHaveCachesOfTheirOwn() {
    _ = cache.open(1, version: 1)
    #expect(cache.open(2, version: 2) == .fresh)
    cache.close(2)
    #expect(cache.open(1, version: 2) == .direct)
  }

  @Test mutating func forgottenFileBeginsAnew() {
    _ = cache.open(1, version: 1)
    cache.close(1)
    cache.forget(1)
    #expect(cache.open(1, version: 1) == .fresh)
  }

  @Test mutating func fileInUseIsNotForgotten() {
    _ = cache.open(1, version: 1)
    cache.forget(1)
    #expect(cache.open(1, version: 2) == .direct)
  }

  @Test mutating func closingAnUnknownFileChangesNothing() {
    cache.close(1)
    cache.forget(1)
    #expect(cache.open(1, version: 1) == .fresh)
  }

  /// Whoever reads through the cache reads the value that the cache was filled with.
  @Test mutating func nobodyReadsAnotherValueThroughTheCache() {
    var (readers, filled): ([UInt64], UInt64?) = ([], nil)
    var number: UInt64 = 1
    for _ in 0..<5_000 {
      number = number &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      let version = number >> 33 % 3
      guard number >> 40 % 2 == 0 else {
        if readers.popLast() != nil { cache.close(1) }
        continue
      }
      switch cache.open(1, version: version) {
      case .direct: #expect(readers.contains { $0 != version })
      case .fresh:
        #expect(readers.isEmpty && filled != version)
        (readers, filled) = ([version], version)
      case .kept:
        #expect(filled == version)
        readers.append(version)
      }
      #expect(readers.allSatisfy { $0 == filled })
    }
  }
}
