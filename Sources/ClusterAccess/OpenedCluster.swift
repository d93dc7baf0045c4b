package import Cluster
import ClusterRecords
import Dispatch
package import EtcdClient
package import Model
import Platform
package import SecretMemory
import Store
import Synchronization

/// A store in a cluster as the process of a mount has it: its engines, and the state that it reports.
package final class OpenedCluster: Sendable {
  package let address: ClusterAddress
  package let store: ClusterStore
  package let suites: ClusterSuites
  package let keychain: ClusterKeychain
  private let client: EtcdCluster
  private let news: ClusterNews
  private let members: MembersLook
  private let state = Mutex(State())

  private struct State: ~Copyable {
    var isClosed = false
    /// Opens this device's keys, as soon as the cluster answers.
    var passphrase: SecretBytes?
    /// An attempt to open the store by the cluster is planned.
    var isConnecting = false
    /// Why this device was not opened with that; nil: it was, or a person has to type one.
    var failure: StoreError?
    var comparison = SightsComparison()
    /// Whether a rotation of the keys was found to be unfinished, when the keys were fetched last.
    var isRotating = false
    /// When something was looked at because of a report.
    var looked: ContinuousClock.Instant?
    /// The last time that a majority of the servers was asked for the report, and why there was no answer.
    var asked: (at: ContinuousClock.Instant, failure: ClusterError?)?
    /// The last time that the servers were asked for their alarms, whether their quota is used up, and whether that was expected.
    var alarm: (at: ContinuousClock.Instant, isFull: Bool?, expected: Bool)?
    /// The versions of the servers, as they were asked last.
    var versions: [String] = []
  }

  /// Opens the store, locked: until it is unlocked, neither names nor values are known.
  ///
  /// `offlineDays`: how long the copy of the keychain on this device is used without the cluster; nil: none is kept, and one that is
  /// there is removed.
  /// - Throws: `notFound` where this device has no keys for the store; `accessDenied`, `damaged`, `invalidName`.
  package init(
    _ address: ClusterAddress, _ login: EtcdLogin?, _ folders: ClusterFolders, offlineDays: Int? = nil,
    propertyLists: any PropertyListCoding
  ) throws(StoreError) {
    self.address = address
    client = address.cluster(login)
    if offlineDays == nil { folders.removeOfflineCopy(of: address.store) }
    store = try ClusterStore(
      client, store: address.store, files: folders.files(of: address.store), offlineDays: offlineDays)
    let news = ClusterNews { folders.noteUse(of: address) }
    self.news = news
    suites = store.suites(propertyLists: propertyLists) { news.tell($0) }
    let members = MembersLook()
    self.members = members
    keychain = ClusterKeychain(store.session, lock: TellingLock(store, news, members)) { news.tellItems() }
    keychain.keep(.standard)
    store.session.setMembersObserver { members.take() }
    members.follow { [weak self] in self?.lookAtMembers() }
  }

  /// From now on the change of a setting to this value counts as its removal, in what is kept of it.
  package func setTombstone(_ value: SettingValue) { suites.setTombstone(value) }

  /// From now on `suite` is called with the name of each suite that others have changed, `items` when others have changed items, and
  /// `opened` after this device was unlocked; each on a thread that may wait.
  package func follow(
    suite: @escaping @Sendable (ExactString) -> Void, items: @escaping @Sendable () -> Void,
    opened: @escaping @Sendable () -> Void
  ) {
    news.follow(suite: suite, items: items) { [weak self] in
      opened()
      guard let self else { return }
      connectLater()
      store.updateOffline()
      compareSights()
    }
  }

  /// Opens the store where `passphrase` opens this device's keys, or they take none, now or when the cluster answers; and begins to compare
  /// sights.
  package func begin(_ passphrase: consuming SecretBytes?) {
    var given = passphrase
    if given == nil, !store.needsPassphrase { given = try? SecretBytes() }
    if let given = given.take() {
      hold(given)
      open()
    }
    // No person is asked for the passphrase of a device that was removed.
    if !isReadable { members.take() }
    compareLater()
  }

  /// How long an unsuccessful attempt to open the store is waited after.
  private static let pause = DispatchTimeInterval.seconds(2)

  private func open() {
    guard let passphrase = state.withLock({ $0.passphrase.take() }), !state.withLock({ $0.isClosed }) else {
      return
    }
    do throws(StoreError) {
      try unlock(passphrase)
      state.withLock { $0.failure = nil }
    } catch {
      state.withLock { $0.failure = error }
      guard case .unreachable = error else { return }
      hold(passphrase)
      Background.run(after: Self.pause) { [weak self] in self?.open() }
    }
  }

  /// Where the store was opened by the copy on this device, opens it by the cluster as soon as that answers.
  private func connectLater() {
    guard store.isOffline, !state.withLock({ $0.isClosed || $0.isConnecting }) else { return }
    state.withLock { $0.isConnecting = true }
    Background.run(after: Self.pause) { [weak self] in
      guard let self else { return }
      state.withLock { $0.isConnecting = false }
      connect()
    }
  }

  private func connect() {
    guard store.isOffline, !state.withLock({ $0.isClosed }) else { return }
    do throws(StoreError) {
      try store.connect()
      state.withLock { $0.failure = nil }
      // Follows the cluster from now on; what others have changed since the copy is reported.
      try? keychain.catchUp()
      news.tellOpened()
    } catch .locked {
      // The next unlock asks the cluster first.
    } catch {
      if error.isNoAnswer { return connectLater() }
      state.withLock { $0.failure = error }
    }
  }

  private func hold(_ passphrase: consuming SecretBytes) {
    var passphrase = Optional(passphrase)
    state.withLock { $0.passphrase = passphrase.take() }
  }

  /// Opens this device's keys. - Throws: as `ClusterStore.unlock`.
  package func unlock(_ passphrase: borrowing SecretBytes) throws(StoreError) {
    try store.unlock(passphrase)
    news.tellOpened()
  }

  /// Ends what follows the cluster, and interrupts its calls. No call may follow.
  package func close() {
    state.withLock { $0.isClosed = true }
    suites.close()
    keychain.close()
    client.close()
    try? store.saveSeen(durably: true)
  }
}

// MARK: - Sights

extension OpenedCluster {
  /// How often what the members have seen is compared. A fork of the history shows after twice as long at the latest: five minutes.
  package static let interval: ClosedRange<Int> = 90...140

  private func compareLater() {
    let seconds = Int.random(in: Self.interval)
    Background.run(after: .seconds(seconds)) { [weak self] in
      guard let self, !state.withLock({ $0.isClosed }) else { return }
      compareSights()
      compareLater()
    }
  }

  /// Says what this device has seen, and compares what the others say with what is shown here. Where it was not unlocked yet, looks whether
  /// it was removed.
  package func compareSights() {
    if store.isRotating { try? store.renew() }
    state.withLock { $0.isRotating = store.isRotating }
    let fresh = SightsComparison(store, suites, keychain, after: state.withLock { $0.comparison })
    state.withLock { $0.comparison = fresh }
    // Before it was unlocked nothing proves that a list of members goes on from the one that it has seen.
    guard isReadable else { return }
    if fresh.isRemoved { store.forgetOffline() } else { store.updateOffline() }
  }

  /// The list of members has changed, or the keys: takes the new ones.
  private func lookAtMembers() {
    guard !state.withLock({ $0.isClosed }) else { return }
    // Without its own keys, or as it was removed: the comparison says so.
    try? store.renew()
    compareSights()
  }

  /// So long nothing is looked at again because of a report.
  private static let rest = Duration.seconds(3)

  /// Looks whether this device was removed, and whether a rotation is still unfinished: on a thread of its own, as no report waits for the
  /// servers.
  func lookAgainLater() {
    let isDue = state.withLock { state in
      if let last = state.looked, last + Self.rest > .now { return false }
      state.looked = .now
      return !state.isClosed
    }
    guard isDue else { return }
    Background.run { [weak self] in self?.compareSights() }
  }

  /// Whether the file of this device's keys is another one than when the store was opened: its passphrase may have been changed.
  package var hasOtherDeviceFile: Bool { store.hasOtherDeviceFile }

  /// Whether settings can be read: this device was unlocked.
  package var isReadable: Bool { store.session.keys.isReadable }

  /// A reply that is older than this is none from now: the servers are asked. So long an answer is waited for.
  private static let moment = Duration.seconds(1)

  /// Why the servers do not answer at present; nil: they do. A server that stopped says nothing, and is noticed only when it is asked.
  func silenceNow() -> ClusterError? {
    let now = ContinuousClock.now
    if let asked = state.withLock({ $0.asked }), asked.at + Self.moment > now { return asked.failure }
    if let last = client.lastReply, last + Self.moment > now { return nil }
    var failure: ClusterError?
    do throws(ClusterError) {
      let request = RangeRequest(KeyRange(key: store.session.paths.ring))
      _ = try client.read(request, interruption: CallInterruption(until: now + Self.moment))
    } catch { failure = error }
    state.withLock { $0.asked = (.now, failure) }
    return failure
  }

  /// Whether the servers have the alarm of a quota that is used up: they keep it until it is disarmed. They are asked every three seconds at most,
  /// and where `expected` is another one than when they were asked.
  ///
  /// nil: none of them says.
  func isFull(expected: Bool) -> Bool? {
    let now = ContinuousClock.now
    if let alarm = state.withLock({ $0.alarm }), alarm.at + Self.rest > now, alarm.expected == expected {
      return alarm.isFull
    }
    let states = client.memberStatus(within: Self.moment).compactMap { try? $0.1.get() }
    let isFull = states.isEmpty ? nil : states.contains { $0.errors.contains { $0.contains("NOSPACE") } }
    state.withLock { state in
      state.alarm = (.now, isFull, expected)
      if !states.isEmpty { state.versions = Array(Set(states.map(\.version))).sorted() }
    }
    return isFull
  }

  /// The versions of etcd of the servers that have answered; empty: they were not asked yet.
  var versions: [String] { state.withLock { $0.versions } }

  /// When a server was heard last; nil: never.
  var heard: Timestamp? {
    client.lastReply.map { last in
      let elapsed = last.duration(to: .now)
      return Timestamp(seconds: Timestamp.now.seconds - elapsed.components.seconds)
    }
  }

  /// The state for `keyhole status`.
  package var report: ClusterReport {
    let (failure, comparison, isRotating) = state.withLock { ($0.failure, $0.comparison, $0.isRotating) }
    return ClusterReport(self, failure, comparison, isRotating: isRotating)
  }
}

/// The lock of this device's keys, which tells when it is opened.
private struct TellingLock: ClusterLock {
  private let store: ClusterStore
  private let news: ClusterNews
  private let members: MembersLook

  init(_ store: ClusterStore, _ news: ClusterNews, _ members: MembersLook) {
    (self.store, self.news, self.members) = (store, news, members)
  }

  var needsPassphrase: Bool { store.needsPassphrase }

  var unlockRefusal: StoreError? {
    let refusal = store.unlockRefusal
    // It may have been approved since: the next question finds that out.
    if refusal != nil { members.take() }
    return refusal
  }

  func lock() { store.lock() }

  func unlock(_ passphrase: borrowing SecretBytes) throws(StoreError) {
    try store.unlock(passphrase)
    news.tellOpened()
  }
}
