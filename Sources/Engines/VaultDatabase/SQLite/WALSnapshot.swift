/// A moment between two commits to a database, of whatever process: with equal marks nothing was committed between.
///
/// It is the header of SQLite's WAL index (https://sqlite.org/walformat.html, 2.1), which lies in memory that all
/// connections share and is replaced as the last step of each commit. A look at it costs no call of the system.
package struct WALSnapshot: Equatable {
  // The 48 bytes of the header's first copy.
  private let front: SIMD4<UInt64>
  private let back: SIMD2<UInt64>

  /// `iVersion` of the only format there is.
  private static let version: UInt32 = 3_007_000

  /// nil: the index is not filled yet, of another format, or its two copies differ: another process writes it at this
  /// moment, or was killed then, and SQLite mends it at the next statement.
  init?(_ index: WALIndex) {
    let header = index.present
    guard header.isWhole, header.version == Self.version, header.isFilled == 1 else { return nil }
    (front, back) = (header.front, header.back)
  }

  /// `iChange`: how many transactions were committed.
  private var commits: UInt32 { UInt32(truncatingIfNeeded: front[1]) }

  /// Whether just one transaction was committed since `earlier`.
  package func isNext(after earlier: WALSnapshot) -> Bool { commits == earlier.commits &+ 1 }
}
