/// How items are divided among the leaves of the hash tree: by the first bits of their tags, with one leaf more for every
/// 32 items (linear hashing: Litwin, VLDB 1980).
///
/// Each leaf holds a range of tags, so that one range of the table's index has all of its rows.
package struct LeafLayout: Hashable {
  /// How many leaves there are: 1 to `most`.
  package let count: UInt64

  /// nil: no number of leaves.
  package init?(count: UInt64) {
    guard (1...Self.most).contains(count) else { return nil }
    self.count = count
  }

  private init(_ count: UInt64) {
    self.count = min(max(count, 1), Self.most)
  }

  package static let one = LeafLayout(1)
  /// More than any table has rows.
  package static let most: UInt64 = 1 << 40
  private static let itemsPerLeaf: UInt64 = 32
  /// With fewer, leaves are merged.
  private static let fewestItemsPerLeaf: UInt64 = 12

  /// In bytes.
  package static let digestSize = 16
  /// How many leaves a page of the hash tree has the digests of.
  package static let leavesPerPage: UInt64 = 256
  package var pageCount: UInt64 { (count - 1) / Self.leavesPerPage + 1 }

  /// The layout for so many items: this one, as long as it is not too small or too large.
  package func fitting(items: UInt64) -> LeafLayout {
    if items > count * Self.itemsPerLeaf {
      return LeafLayout((items - 1) / Self.itemsPerLeaf + 1)
    }
    return items < count * Self.fewestItemsPerLeaf ? LeafLayout(items / Self.fewestItemsPerLeaf) : self
  }

  /// The leaf that has the rows with a tag.
  package func leaf(of tag: ItemTag) -> UInt64 {
    let bits = tag.high.reversedBits
    let leaf = bits & (size - 1)
    return leaf < count ? leaf : bits & (size / 2 - 1)
  }

  /// The first 64 bits of the tags of a leaf.
  package func tags(of leaf: UInt64) -> ClosedRange<UInt64> {
    // A leaf that was not divided yet has one bit less.
    let isWhole = size > 1 && leaf < size / 2 && leaf + size / 2 >= count
    let depth = size.trailingZeroBitCount - (isWhole ? 1 : 0)
    let first = leaf.reversedBits
    return first...(first | .max >> UInt64(depth))
  }

  /// The leaves that have other rows in another layout, of both layouts.
  package func leavesChanged(in other: LeafLayout) -> Set<UInt64> {
    var leaves: Set<UInt64> = []
    for leaf in min(count, other.count)..<max(count, other.count) {
      leaves.insert(leaf)
      leaves.insert(leaf & ~(1 << UInt64(63 - leaf.leadingZeroBitCount)))
    }
    return leaves
  }

  /// The power of two that is no smaller than the number of leaves.
  private var size: UInt64 { count == 1 ? 1 : 1 << UInt64(64 - (count - 1).leadingZeroBitCount) }
}

extension UInt64 {
  /// The last bit first.
  fileprivate var reversedBits: UInt64 {
    var bits = self
    bits = bits >> 1 & 0x5555_5555_5555_5555 | (bits & 0x5555_5555_5555_5555) << 1
    bits = bits >> 2 & 0x3333_3333_3333_3333 | (bits & 0x3333_3333_3333_3333) << 2
    bits = bits >> 4 & 0x0F0F_0F0F_0F0F_0F0F | (bits & 0x0F0F_0F0F_0F0F_0F0F) << 4
    return bits.byteSwapped
  }
}
