import Model
import Store

extension SuiteServer {
  func reply(to request: SuiteHistoryRequest) throws(StoreError) -> ControlMessage {
    guard let history = store.engine.history else {
      guard case .retention = request else { throw .noHistory }
      return .suites(.history(.retention(nil)))
    }
    switch request {
    case .retention: return .suites(.history(.retention(history.retention)))
    case .versions(let suite): return .suites(.history(.versions(try history.versions(of: suite))))
    case .suites: return .suites(.history(.suites(try history.suitesWithVersions())))
    case .keepsVersions(let suite): return .suites(.history(.keeps(history.keepsVersions(of: suite))))
    case .purge(let suite, let key):
      try requireWritable()
      return .suites(.history(.count(try history.purge(suite, key))))
    case .purgeBeforeRemoval(let suite, let keys):
      try requireWritable()
      return .suites(.history(.count(try history.purge(Set(keys), beforeRemovalFrom: suite))))
    // The mount's process makes the changes itself.
    case .endPurge(let suite, _): history.endPurge(of: suite, isFollowed: false)
    case .setKeepsVersions(let suite, let keeps):
      try requireWritable()
      try history.setKeepsVersions(keeps, of: suite)
    }
    return .done
  }
}
