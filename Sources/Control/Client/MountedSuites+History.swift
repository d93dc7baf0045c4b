package import Model
package import Store

/// The mount's process keeps the values that settings had.
extension MountedSuites: VersionedSuites {
  /// The suites themselves: where the mount keeps no values, there are none, and a change says so.
  package var history: (any VersionedSuites)? { self }

  private func reply(to request: SuiteHistoryRequest) throws(StoreError) -> SuiteHistoryReply {
    guard case .history(let reply) = try reply(to: SuiteRequest.history(request)) else {
      throw WireReader.unreadable
    }
    return reply
  }

  private func count(_ request: SuiteHistoryRequest) throws(StoreError) -> Int {
    guard case .count(let count) = try reply(to: request) else { throw WireReader.unreadable }
    return count
  }

  package var retention: HistoryRetention? {
    guard case .retention(let retention)? = try? reply(to: .retention) else { return nil }
    return retention
  }

  /// Does nothing: the mount's configuration says how much is kept.
  package func keep(_ retention: HistoryRetention) {}

  package func versions(of suite: ExactString) throws(StoreError) -> [SettingVersion] {
    guard case .versions(let versions) = try historyReply(to: .versions(suite)) else { return [] }
    return versions
  }

  package func suitesWithVersions() throws(StoreError) -> [ExactString] {
    guard case .suites(let suites) = try historyReply(to: .suites) else { return [] }
    return suites
  }

  /// nil: the mount keeps no values.
  private func historyReply(to request: SuiteHistoryRequest) throws(StoreError) -> SuiteHistoryReply? {
    do throws(StoreError) { return try reply(to: request) } catch .noHistory { return nil }
  }

  @discardableResult
  package func purge(_ suite: ExactString, _ key: ExactString?) throws(StoreError) -> Int {
    try count(.purge(suite, key: key))
  }

  @discardableResult
  package func purge(
    _ keys: Set<ExactString>, beforeRemovalFrom suite: ExactString
  ) throws(StoreError) -> Int {
    try count(.purgeBeforeRemoval(suite, Array(keys)))
  }

  package func endPurge(of suite: ExactString, isFollowed: Bool) {
    _ = try? ask(.history(.endPurge(suite, isFollowed: isFollowed)))
  }

  /// Does nothing: the mount's process does.
  @discardableResult package func prune() -> Int { 0 }

  /// Does nothing: the mount's process keeps what it replaces.
  package func keep(
    _ values: [ExactString: SettingValue], of suite: ExactString, removed: Set<ExactString>
  ) {}

  package func keepsVersions(of suite: ExactString) -> Bool {
    guard case .keeps(let keeps)? = try? reply(to: .keepsVersions(suite)) else { return true }
    return keeps
  }

  package func setKeepsVersions(_ keeps: Bool, of suite: ExactString) throws(StoreError) {
    _ = try ask(.history(.setKeepsVersions(suite, keeps)))
  }
}
