import Testing

@testable import VaultRecords

@Suite struct LeafLayoutTests {
  private static let tags = (0..<200).map { _ in
    ItemTag(high: .random(in: .min ... .max), low: .random(in: .min ... .max))
  }

  @Test(arguments: [1, 2, 3, 5, 8, 9, 31, 256, 257, 1000] as [UInt64])
  func eachTagBelongsToTheLeafWithItsRange(_ count: UInt64) throws {
    let layout = try #require(LeafLayout(count: count))
    for tag in Self.tags { #expect(layout.tags(of: layout.leaf(of: tag)).contains(tag.high)) }
    var next: UInt64 = 0
    for range in (0..<count).map({ layout.tags(of: $0) }).sorted(by: { $0.lowerBound < $1.lowerBound }) {
      #expect(range.lowerBound == next)
      next = range.upperBound &+ 1
    }
    #expect(next == 0, "all tags")
  }

  @Test(arguments: [(1, 2), (1, 9), (4, 5), (5, 4), (9, 1), (7, 30)] as [(UInt64, UInt64)])
  func otherLeavesKeepTheirRows(_ old: UInt64, _ new: UInt64) throws {
    let (old, new) = (try #require(LeafLayout(count: old)), try #require(LeafLayout(count: new)))
    let changed = old.leavesChanged(in: new)
    #expect(changed == new.leavesChanged(in: old))
    for tag in Self.tags where !changed.contains(old.leaf(of: tag)) {
      #expect(old.leaf(of: tag) == new.leaf(of: tag))
    }
    for tag in Self.tags where !changed.contains(new.leaf(of: tag)) {
      #expect(old.leaf(of: tag) == new.leaf(of: tag))
    }
  }

  @Test func leavesGrowAndShrinkWithTheItems() throws {
    var layout = LeafLayout.one
    for items in (0...5000 as ClosedRange<UInt64>).map({ $0 }) + (0...5000).reversed() {
      let next = layout.fitting(items: items)
      #expect(next.fitting(items: items) == next)
      #expect(max(next.count, layout.count) - min(next.count, layout.count) <= 1, "one at a time")
      #expect(items <= next.count * 32 && (items >= next.count * 12 || next == .one))
      layout = next
    }
    #expect(layout == .one)
  }

  @Test func rangeOfACountIsChecked() {
    #expect(LeafLayout(count: 0) == nil && LeafLayout(count: .max) == nil)
    #expect(LeafLayout(count: LeafLayout.most)?.leaf(of: ItemTag(high: .max, low: 0)) == LeafLayout.most - 1)
  }
}
