import ClusterAccess
import Control
import Model
import Mount
import OneTimeCodes
import Platform
import SecretMemory
import Store
import Synchronization
import Tree

/// The operations of a mount's process for requests on its control socket.
final class TreeControlService: ControlService {
  let isReadOnly: Bool
  private let tree: FileTree
  private let mount: TreeFileSystem
  /// nil: the mount gives no signs of life.
  private let watchdog: Watchdog?
  private let report: StatusReport
  /// nil: the mount shows nothing of a cluster.
  private let cluster: MountedCluster?
  private let failures = Atomic<Int>(0)
  private let hasEnded = Atomic(false)

  init(
    _ tree: FileTree, _ mount: TreeFileSystem, _ report: StatusReport, _ watchdog: Watchdog?,
    _ cluster: MountedCluster?, isReadOnly: Bool
  ) {
    self.cluster = cluster
    (self.tree, self.mount, self.watchdog, self.isReadOnly) = (tree, mount, watchdog, isReadOnly)
    self.report = report
  }

  var status: String { String(decoding: report.content, as: UTF8.self) }

  var keychain: KeychainStore? { tree.keychain }

  var settings: SettingsStore? { cluster?.suites == nil ? nil : tree.settings }

  var isEnding: Bool { hasEnded.load(ordering: .acquiring) }

  /// The mount is gone.
  func end() {
    hasEnded.store(true, ordering: .releasing)
  }

  func lock() throws(StoreError) {
    try tree.lock()
  }

  func unlock(_ passphrase: borrowing SecretBytes) throws(StoreError) {
    if passphrase.isEmpty, cluster?.opened.isReadable != false, let locking = tree.keychain?.engine.locking,
      locking.needsPassphrase, locking.isOpenThroughout,
      cluster?.opened.hasOtherDeviceFile != true
    {
      return
    }
    do throws(StoreError) {
      try unlockAll(passphrase)
      failures.store(0, ordering: .relaxed)
    } catch {
      if error == .rejected { slowDown() }
      throw error
    }
  }

  /// The settings of a cluster are opened by this device's passphrase, the keychain beside them by its own. A passphrase that opens one of
  /// them is a right one; the report says whether the other is still locked.
  private func unlockAll(_ passphrase: borrowing SecretBytes) throws(StoreError) {
    guard let cluster, cluster.isBesideKeychain else {
      guard let keychain = tree.keychain else { throw .notFound }
      return try keychain.unlock(passphrase)
    }
    var (hasOpened, failure): (Bool, StoreError?) = (false, nil)
    if !cluster.opened.isReadable {
      do throws(StoreError) {
        try cluster.opened.unlock(passphrase)
        hasOpened = true
      } catch { failure = error }
    }
    if let keychain = tree.keychain {
      let wasOpen = keychain.engine.locking.lockState == .open
      do throws(StoreError) {
        try keychain.unlock(passphrase)
        // Where it was open it may take any passphrase, or has become open by other keys.
        hasOpened = hasOpened || !wasOpen || failure == nil
      } catch {
        failure = failure ?? error
      }
    }
    guard let failure else { return }
    // It takes one, whatever else was open without.
    guard !passphrase.isEmpty else { throw .locked }
    // Of a right passphrase for one, the other says that it is wrong; any other failure is one.
    guard hasOpened, failure == .rejected || failure == .locked else { throw failure }
  }

  /// After the third wrong passphrase each costs a second more, up to ten.
  private func slowDown() {
    let count = failures.add(1, ordering: .relaxed).newValue
    if count >= 3 { Pause.microseconds(1_000_000 * UInt32(min(count - 2, 10))) }
  }

  func oneTimeCode(of item: Item, _ permit: Permit) throws(StoreError) -> OneTimeCode {
    guard let keychain = tree.keychain else { throw .notFound }
    return try keychain.oneTimeCode(of: item, permit, counting: !isReadOnly)
  }

  func path(of item: ItemID) throws(StoreError) -> String? { try tree.path(of: item) }

  func path(of identity: ItemIdentity) -> String { FileTree.path(of: identity) }

  func path(of scope: RuleScope) -> String { FileTree.path(of: scope) }

  func scope(at path: String) throws(StoreError) -> RuleScope {
    guard let scope = try tree.ruleScope(at: path.unicodeScalars.split(separator: "/").map({ String($0) }))
    else {
      throw .notFound
    }
    return scope
  }

  func pauseReplay(_ done: @escaping @Sendable () -> Void) {
    guard let watchdog else { return mount.pauseReplay(done) }
    mount.pauseReplay { watchdog.pause(done) }
  }

  func catchUp(with suites: [ExactString], _ done: @escaping @Sendable () -> Void) {
    for suite in suites { tree.settings.refresh(suite) }
    try? tree.keychain?.refresh()
    mount.whenShown(done)
  }

  func requestDidEnd() { mount.planMemoryRelease() }

  func resumeReplay() {
    mount.resumeReplay()
    watchdog?.resume()
  }
}
