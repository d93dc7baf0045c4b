package import Model
package import VaultRecords

/// Of which member a sight is, and of which collection.
package struct SightPlace: Hashable, Sendable {
  package var member: ItemKey
  /// The key of the head that was compared; empty: the list of members.
  package var key: [UInt8]

  package init(member: ItemKey, key: [UInt8]) { (self.member, self.key) = (member, key) }
}

/// A sight of another member that did not fit what was shown here, or one by which that has ended.
package struct SightDoubt: Hashable, Sendable {
  /// When the member has said so.
  package var time: Timestamp
  /// The revision that the member had seen then: its sights are in the order of these, whatever its clock says.
  package var revision: Int64
  /// `fits`: an earlier doubt has ended. It is kept, as the file and other processes of this device may have that still.
  package var comparison: SightComparison

  package init(time: Timestamp, revision: Int64, comparison: SightComparison) {
    (self.time, self.revision, self.comparison) = (time, revision, comparison)
  }
}

extension SightDoubt: Comparable {
  /// The later one counts. Of one sight, what was not shown may have been shown since; a fork stays one.
  package static func < (left: SightDoubt, right: SightDoubt) -> Bool {
    (left.revision, left.rank) < (right.revision, right.rank)
  }

  private var rank: Int {
    switch comparison {
    case .isWithheld: 0
    case .fits: 1
    case .isForked: 2
    }
  }
}
