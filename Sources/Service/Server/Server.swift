import BusServer
import CSystem
import Control
import Dispatch
import Fuse
import KeychainSelection
import Model
import Mount
import Platform
import Prompting
import Store
import Synchronization
import Tree
import Vault
import Views

/// The mount as a running process: the stores, the tree, the kernel's session, and the loop of changes.
package final class Server: Sendable {
  private let options: MountOptions
  private let configuration: MountConfiguration
  private let mountPoint: String
  /// Where root has mounted already.
  private let device: Int32?
  private let stores: Stores
  /// nil: there is no store of a cluster.
  private let cluster: MountedCluster?
  private let places: StoragePaths
  private let fileSystem: TreeFileSystem
  private let session: Session
  private let tree: FileTree
  private let report: StatusReport
  private let trustNotice: TrustNotice
  /// nil: `echo=off`, or a mount on which nothing can be done that inotify tells.
  private let replay: ReplayProcess?
  /// nil: without --service.
  private let secretService: SecretServiceHost?

  /// `version`: of the program, for the report. `device`: where root has mounted already.
  package init(
    _ options: MountOptions, _ places: StoragePaths, _ mountPoint: String, version: String,
    device: Int32? = nil
  ) throws {
    let configuration = MountConfiguration(options, places)
    (self.options, self.configuration) = (options, configuration)
    self.mountPoint = mountPoint
    self.device = device
    self.places = places
    linux_return_freed_memory()
    let record = AccessLog(stateFolder: places.state)
    var opening = options.keychain
    opening.reading = .fewItems
    let cluster = try MountedCluster(options, places)
    self.cluster = cluster
    if let cluster, !cluster.isBesideKeychain {
      configuration.follow(device: { cluster.deviceRecord })
    }
    stores = try Stores(
      places, keychain: opening, controller: configuration.accessController(places, record),
      unlocking: configuration.unlockController(places), loadingSettings: true, cluster: cluster)
    configuration.follow(stores)
    let present = configuration.present
    trustNotice = TrustNotice(stores.keychain?.engine, places)
    trustNotice.write()
    let report = StatusReport(options, configuration, places, stores, mountPoint, version: version)
    if let cluster { report.follow(cluster.opened) }
    report.add { record.problem.map { [$0] } ?? [] }
    self.report = report
    replay = present.isOn(.echo) && !options.isReadOnly ? ReplayProcess(mountPoint) : nil
    var treeOptions = FileTree.Options()
    treeOptions.isReadOnly = options.isReadOnly
    treeOptions.stateFolder = places.state
    treeOptions.keepsLineEnds = present.text(.eol) == "exact"
    treeOptions.enrolledFingers = EnrolledSet.digest
    if options.settings[.authCommand] == nil { treeOptions.factors = ApprovalFactors.ofMachine }
    treeOptions.status = { report.content }
    tree = FileTree(settings: stores.settings, keychain: stores.keychain, options: treeOptions)
    fileSystem = TreeFileSystem(tree)
    secretService = try Self.secretService(options, stores, tree, configuration, places)
    report.add { [secretService] in secretService?.problem.map { [$0] } ?? [] }
    report.bus = { [secretService] in secretService?.address ?? "" }
    report.follow(fileSystem)
    report.faultsOfViews = { [weak tree, keychain = stores.keychain] in
      // The status does not wait until the items of a large keychain are read.
      keychain?.isLoading == true ? [] : tree?.views?.problems() ?? []
    }
    stores.settleKeychain()
    do throws(SessionError) {
      session = try Session(fileSystem, options: options.sessionOptions)
    } catch {
      throw Failure(mountPoint, "\(error.description); `keyhole doctor` may know more")
    }
  }

  /// nil: it is not wanted. - Throws: `Failure` where the keychain is not the vault.
  private static func secretService(
    _ options: MountOptions, _ stores: Stores, _ tree: FileTree, _ configuration: MountConfiguration,
    _ places: StoragePaths
  ) throws -> SecretServiceHost? {
    guard options.servesSecretService else { return nil }
    try KeychainChoice.requireVault(stores.keychain?.engine.name)
    return stores.keychain.map { keychain in
      SecretServiceHost(
        keychain, stores.feed, .init(tree, configuration, places, isReadOnly: options.isReadOnly),
        replaces: false)
    }
  }

  /// The mount is there also where another program has the name, or there is no bus yet.
  private func startSecretService() {
    guard let secretService else { return }
    do throws(BusFailure) {
      try secretService.start()
      if let problem = secretService.problem {
        StandardError.note("\(problem); this mount takes the name when it is free")
      }
    } catch {
      StandardError.note("the Secret Service is not served: \(error.reason)")
      if SessionBus.address == nil { secretService.tryAgain() }
    }
  }

  /// nil: there is no keychain.
  private func startAutoLock() throws -> AutoLock? {
    guard let keychain = stores.keychain else { return nil }
    do throws(StoreError) {
      return try AutoLock(tree, keychain, stores.feed) { [configuration] in
        configuration.present.number(.autoLock)
      }
    } catch {
      throw Failure(mountPoint, error)
    }
  }

  /// Mounts, calls `ready` when the kernel has its first answer, and serves until the mount is gone.
  package func serve(_ ready: @escaping @Sendable () -> Void) throws {
    let signals = EndSignals.watch { [session] in session.unmount() }
    defer { signals?.cancel() }
    let manager = ServiceManager(mountPoint)
    let service = TreeControlService(
      tree, fileSystem, report, manager?.watchdog, cluster, isReadOnly: options.isReadOnly)
    let control = try listen(service)
    defer { control.end() }
    let autoLock = try startAutoLock()
    defer { autoLock?.end() }
    let sessionLock = stores.keychain.map { SessionLock(tree, $0) }
    defer { sessionLock?.end() }
    report.locking = { [weak sessionLock] in sessionLock?.description ?? "" }
    if options.settings[.authCommand] == nil {
      report.approval = { [weak sessionLock] in
        sessionLock?.missingLogind.map(StatusReport.withoutConsent) ?? ""
      }
    }
    do throws(SessionError) {
      // Locked before it is reported as ready.
      let lock = MountLock(mountPoint, state: places.state)
      defer { lock?.end() }
      let record = MountRegistration.add(
        mountPoint, stores.keychainOpening, settings: cluster?.settings ?? places.configuration,
        in: places.runtime)
      defer { record.remove() }
      // Start watching before signalling readiness, so that no later change is missed.
      let watch = followChanges()
      let links = tree.views.map { LinkWatch($0, at: mountPoint, stores.feed.watch()) }
      defer { links?.end() }
      defer { withExtendedLifetime(watch) {} }
      cluster?.begin()
      defer { cluster?.close() }
      startSecretService()
      defer { secretService?.end() }
      defer { manager?.isStopping() }
      try session.mount(at: mountPoint, through: device) { [mountPoint, fileSystem] in
        ready()
        manager?.isReady(mountPoint)
        CurrentProcess.forgetCode()
        fileSystem.planMemoryRelease()
      }
      fileSystem.connect(session.invalidator)
      let presence = MountPresence(mountPoint) { [self] in
        leave(control, service, record)
        lock?.end()
      }
      defer { presence?.end() }
      try session.run()
      stores.keychain?.stopLoading()
      session.unmount()
    } catch {
      throw Failure(mountPoint, "\(error.description); `keyhole doctor` may know more")
    }
    replay?.stop()
    fileSystem.finish()
  }

  /// The mount point is gone, and the kernel may keep the file system for others: ends with the last file that is open.
  private func leave(_ control: ControlServer, _ service: TreeControlService, _ record: MountRegistration) {
    // A file that is still open, after --lazy, needs no item that was not found yet; programs on the bus do.
    if secretService == nil { stores.keychain?.stopLoading() }
    service.end()
    session.forgetMountPoint()
    fileSystem.detach { [session] in session.unmount() }
    control.end()
    record.remove()
    // A Secret Service is other programs' too: it stays as it is.
    if tree.openSecrets.isEmpty, tree.keychain?.mayBlock == false { try? tree.lock() }
  }

  /// - Throws: `Failure` where the runtime folder is not the user's own and private.
  private func listen(_ service: TreeControlService) throws -> ControlServer {
    do throws(StoreError) {
      return try ControlServer(folder: places.runtime, service)
    } catch {
      throw Failure(places.runtime, error)
    }
  }

  /// Reads changed stores again, and notifies the kernel.
  private func followChanges() -> StoreWatch {
    let (changes, progress) = stores.feed.follow(limit: .max)
    UserFolders.make(places.configuration)
    let watch = StoreWatch(stores, places)
    fileSystem.beginFollowing()
    if let keychain = stores.keychain, keychain.isLoading {
      Background.run { [trustNotice, fileSystem] in
        try? keychain.load()
        trustNotice.write()
        fileSystem.planMemoryRelease()
      }
    }
    Background.run { [stores] in
      stores.settings.engine.history?.prune()
      stores.keychain?.pruneVersions()
    }
    if let replay { fileSystem.replay(through: replay) }
    Task(executorPreference: Background.tasks) { [fileSystem] in await fileSystem.follow(changes, progress) }
    let news = stores.feed.watch()
    Task(executorPreference: Background.tasks) { [stores] in
      for await change in news where change.mayBeOfConfiguration {
        let before = stores.settings.engine.history?.retention
        stores.keepHistory()
        // Values beyond a lower limit are deleted at once: they would be shown again under a higher one.
        if stores.settings.engine.history?.retention != before { stores.settings.engine.history?.prune() }
      }
    }
    report.add { [weak watch, replay] in (watch?.problems ?? []) + (replay?.problem.map { [$0] } ?? []) }
    return watch
  }
}
