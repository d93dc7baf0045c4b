package import Model
package import Store

/// A request about the values that settings of a mount's suites had. It is answered as `VersionedSuites` says.
package enum SuiteHistoryRequest: Hashable, Sendable {
  /// `retention` is the answer.
  case retention
  /// `versions` is the answer.
  case versions(ExactString)
  /// `suites` is the answer.
  case suites
  /// Of one key, or of all; `count` is the answer.
  case purge(ExactString, key: ExactString?)
  /// `count` is the answer.
  case purgeBeforeRemoval(ExactString, [ExactString])
  case endPurge(ExactString, isFollowed: Bool)
  /// `keeps` is the answer.
  case keepsVersions(ExactString)
  case setKeepsVersions(ExactString, Bool)
}

/// The answers to `SuiteHistoryRequest`.
package enum SuiteHistoryReply: Hashable, Sendable {
  case retention(HistoryRetention?)
  case versions([SettingVersion])
  case suites([ExactString])
  case count(Int)
  case keeps(Bool)
}

extension WireWriter {
  mutating func put(_ request: SuiteHistoryRequest) {
    switch request {
    case .retention: put(1 as UInt8)
    case .versions(let suite):
      put(2 as UInt8)
      put(suite)
    case .suites: put(3 as UInt8)
    case .purge(let suite, let key):
      put(4 as UInt8)
      put(suite)
      put(key) { $0.put($1) }
    case .purgeBeforeRemoval(let suite, let keys):
      put(5 as UInt8)
      put(suite)
      put(keys) { $0.put($1) }
    case .endPurge(let suite, let isFollowed):
      put(6 as UInt8)
      put(suite)
      put(isFollowed)
    case .keepsVersions(let suite):
      put(7 as UInt8)
      put(suite)
    case .setKeepsVersions(let suite, let keeps):
      put(8 as UInt8)
      put(suite)
      put(keeps)
    }
  }

  mutating func put(_ reply: SuiteHistoryReply) {
    switch reply {
    case .retention(let retention):
      put(1 as UInt8)
      put(retention) {
        $0.put(UInt64($1.versions))
        $0.put(UInt64($1.days))
      }
    case .versions(let versions):
      put(2 as UInt8)
      put(versions) { $0.put($1) }
    case .suites(let suites):
      put(3 as UInt8)
      put(suites) { $0.put($1) }
    case .count(let count):
      put(4 as UInt8)
      put(UInt64(clamping: count))
    case .keeps(let keeps):
      put(5 as UInt8)
      put(keeps)
    }
  }

  private mutating func put(_ version: SettingVersion) {
    put(version.number)
    put(version.key)
    put(version.value)
    put(version.replaced)
    put(version.changes.rawValue)
  }
}

extension WireReader {
  mutating func suiteHistoryRequest() throws(StoreError) -> SuiteHistoryRequest {
    switch try integer(UInt8.self) {
    case 1: .retention
    case 2: .versions(try name())
    case 3: .suites
    case 4: .purge(try name(), key: try optional { (reader) throws(StoreError) in try reader.name() })
    case 5:
      .purgeBeforeRemoval(
        try name(), try list { (reader) throws(StoreError) in try reader.name() })
    case 6: .endPurge(try name(), isFollowed: try flag())
    case 7: .keepsVersions(try name())
    case 8: .setKeepsVersions(try name(), try flag())
    default: throw Self.unreadable
    }
  }

  mutating func suiteHistoryReply() throws(StoreError) -> SuiteHistoryReply {
    switch try integer(UInt8.self) {
    case 1:
      .retention(
        try optional { (reader) throws(StoreError) in
          let (versions, days) = (try reader.integer(UInt64.self), try reader.integer(UInt64.self))
          return HistoryRetention(versions: Int(clamping: versions), days: Int(clamping: days))
        })
    case 2:
      .versions(
        try list { (reader) throws(StoreError) in
          SettingVersion(
            number: try reader.integer(), key: try reader.name(), value: try reader.value(depth: 0),
            replaced: try reader.time(), changes: VersionChanges(rawValue: try reader.integer()))
        })
    case 3: .suites(try list { (reader) throws(StoreError) in try reader.name() })
    case 4: .count(Int(clamping: try integer(UInt64.self)))
    case 5: .keeps(try flag())
    default: throw Self.unreadable
    }
  }
}
