import Cluster
import ClusterRecords
import Model
import Store
import VaultRecords

/// The last comparison of what the members of a store have seen.
struct SightsComparison: Sendable {
  /// When it was made; nil: not yet.
  private(set) var time: Timestamp?
  /// Members that have seen something else than this device.
  private(set) var findings: [SightFinding] = []
  /// When each other member has last said what it had seen.
  private(set) var lastSights: [ItemKey: Timestamp] = [:]
  /// Those of them whose record the cluster does not show any more.
  private(set) var missing: Set<ItemKey> = []
  /// This device is no member any more.
  private(set) var isRemoved = false
  /// The list of members is followed by entries that no member has signed.
  private(set) var hasStrayEntries = false

  init() {}

  /// Says what this device has seen, and compares. Where the cluster does not answer, it is as it was `before`.
  init(
    _ store: ClusterStore, _ suites: ClusterSuites, _ keychain: ClusterKeychain,
    after before: SightsComparison
  ) {
    self = before
    do throws(StoreError) {
      isRemoved = try !store.members().contains { $0.id == store.device }
      hasStrayEntries = store.hasStrayEntries
      guard !isRemoved, store.session.keys.isReadable else { return }
      let others = try store.otherSights()
      (lastSights, missing) = (others.mapValues(\.time), Set(others.filter(\.value.isMissing).keys))
      findings = try store.compareSights(suites, keychain)
      time = .now
      try store.publishSight(suites, keychain)
    } catch {
      // A later one does better; what the cluster has refused is noted by the session.
    }
  }
}
