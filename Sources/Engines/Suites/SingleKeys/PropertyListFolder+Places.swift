import Model
import Platform
import Store

extension PropertyListFolder {
  /// A fold that was made without decoding the file.
  enum FoldByPlaces {
    /// The file has everything that is in the journal up to this offset.
    case nothing(end: Int)
    case version(Fold)
    /// The file has to be read whole.
    case unknown
  }

  /// With more keys than this, every entry of the file would be compared with too many.
  private static let mostKeys = 16

  /// Puts the values that the journal has in the places of those in the file.
  func foldByPlaces(_ file: SuiteFile) throws(StoreError) -> FoldByPlaces {
    guard let status = try file.status(), let journal = try file.journal.read(), journal.stamp.size > 0,
      try file.status()?.stamp == status.stamp
    else { return .unknown }
    let (commits, isExact) = journal.unfolded(by: FileVersion(status.stamp))
    guard isExact else { return .unknown }
    guard let time = commits.last?.record.time else {
      return .nothing(end: Int(clamping: journal.stamp.size))
    }
    let changes = commits.map(\.record).lastValues
    guard changes.count <= Self.mostKeys, let content = try file.readBytes(status),
      let found = FoundKeys(of: Array(changes.keys), in: content),
      let bytes = found.document(with: changes), bytes.count + 1024 <= SuiteFile.largest
    else { return .unknown }
    var stamp = status.stamp
    stamp.journal = journal.stamp
    return .version(Fold(stamp: stamp, version: SuiteVersion(bytes: bytes, time: time, showsDamage: true)))
  }
}

extension [JournalRecord] {
  /// The last value of each key that the commits change; nil: it was removed.
  fileprivate var lastValues: [ExactString: SettingValue?] {
    var values: [ExactString: SettingValue?] = [:]
    for record in self {
      guard case .commit(let commit) = record.content else { continue }
      for change in commit.changes { values[change.key] = .some(change.value) }
    }
    return values
  }
}
