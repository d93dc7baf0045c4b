import BusServer
import CSystem
import Control
import Dispatch
import KeychainSelection
import Model
import Mount
import Platform
import Store
import Synchronization
import Tree
import Vault

/// `keyhole service`: the process that serves the vault as org.freedesktop.secrets, without a mount.
///
/// It asks, locks and records as the process of a mount does, and commands find it in the same way.
package final class KeychainService: Sendable {
  private let configuration: MountConfiguration
  private let stores: Stores
  private let keychain: KeychainStore
  private let places: StoragePaths
  private let tree: FileTree
  private let fileSystem: TreeFileSystem
  private let replaces: Bool
  private let report: StatusReport

  /// `version`: of the program, for the report.
  ///
  /// - Throws: `Failure` where the vault can't be opened, or the keychain is another program's.
  package init(_ places: StoragePaths, version: String, replaces: Bool) throws {
    self.replaces = replaces
    let opening = try Self.opening(places)
    var options = MountOptions()
    options.keychain = opening
    configuration = MountConfiguration(options, places)
    self.places = opening.vault.map(places.with(vault:)) ?? places
    linux_return_freed_memory()
    let record = AccessLog(stateFolder: places.state)
    stores = try Stores(
      self.places, keychain: opening, controller: configuration.accessController(self.places, record),
      unlocking: configuration.unlockController(self.places), loadingSettings: true)
    try KeychainChoice.requireVault(stores.keychain?.engine.name)
    guard let keychain = stores.keychain else { throw Failure(nil, "no keychain is shown") }
    self.keychain = keychain
    configuration.follow(stores)
    TrustNotice(keychain.engine, self.places).write()
    tree = FileTree(settings: stores.settings, keychain: keychain, options: FileTree.Options())
    fileSystem = TreeFileSystem(tree)
    report = StatusReport(
      options, configuration, self.places, stores, MountRegistration.serviceName, version: version)
    report.add { record.problem.map { [$0] } ?? [] }
    report.follow(fileSystem)
  }

  /// The vault, as the running mount has it.
  private static func opening(_ places: StoragePaths) throws -> KeychainConfiguration {
    var opening = KeychainConfiguration.present(runtime: places.runtime)
    if opening.choice == .automatic {
      if ChosenKeychain.fetch(state: places.state) == .secretService {
        try KeychainChoice.requireVault(KeychainChoice.secretService.rawValue)
      }
      opening.choice = .vault
    }
    try KeychainChoice.requireVault(opening.choice.rawValue)
    opening.credential = environment("CREDENTIALS_DIRECTORY").flatMap { VaultCredential(in: $0) }
    opening.reading = .fewItems
    return opening
  }

  /// Serves until a signal ends it, or the bus or the name is lost; `ready` is called when the name is taken.
  ///
  /// - Throws: `Failure` with what to do.
  package func serve(_ ready: @escaping @Sendable () -> Void) throws {
    let end = Promise<String?>()
    let signals = EndSignals.watch { end.fulfill(nil) }
    defer { signals?.cancel() }
    let service = TreeControlService(tree, fileSystem, report, nil, nil, isReadOnly: false)
    let control = try attempt(places.runtime) { () throws(StoreError) in
      try ControlServer(folder: places.runtime, service)
    }
    defer { control.end() }
    let autoLock = try attempt("keychain") { () throws(StoreError) in
      try AutoLock(tree, keychain, stores.feed) { [configuration] in
        configuration.present.number(.autoLock)
      }
    }
    defer { autoLock.end() }
    let sessionLock = SessionLock(tree, keychain)
    defer { sessionLock.end() }
    report.locking = { [weak sessionLock] in sessionLock?.description ?? "" }
    report.approval = { [weak sessionLock] in
      sessionLock?.missingLogind.map(StatusReport.withoutConsent) ?? ""
    }
    let watch = StoreWatch(stores, places)
    defer { withExtendedLifetime(watch) {} }
    report.add { [weak watch] in watch?.problems ?? [] }
    let host = SecretServiceHost(
      keychain, stores.feed, .init(tree, configuration, places, isReadOnly: false), replaces: replaces)
    do throws(BusFailure) {
      try host.start { end.fulfill($0) }
    } catch {
      throw Failure("Secret Service", error.reason)
    }
    defer { host.end() }
    report.bus = { [weak host] in host?.address ?? "" }
    let record = MountRegistration.add(
      MountRegistration.serviceName, stores.keychainOpening, settings: places.configuration,
      in: places.runtime)
    defer { record.remove() }
    ChosenKeychain.note(.vault, state: places.state)
    ready()
    CurrentProcess.forgetCode()
    if keychain.isLoading { Background.run { [keychain] in try? keychain.load() } }
    let reason = end.wait()
    service.end()
    try? tree.lock()
    if let reason { throw Failure("Secret Service", "it ended: \(reason)") }
  }

  private func attempt<Value>(_ subject: String, _ body: () throws(StoreError) -> Value) throws -> Value {
    do throws(StoreError) { return try body() } catch { throw Failure(subject, error) }
  }
}

extension SecretServiceServer.Options {
  /// Those of a process that serves a tree.
  init(_ tree: FileTree, _ configuration: MountConfiguration, _ places: StoragePaths, isReadOnly: Bool) {
    self.init(
      lock: { () throws(StoreError) in
        try tree.lock()
        Self.lockOthers(places)
      },
      plainPrograms: { configuration.present.list(.plainPrograms) },
      label: CollectionLabel(state: places.state), defaultAlias: DefaultAlias(state: places.state),
      runtime: places.runtime, isReadOnly: isReadOnly)
  }

  /// The vault has one lock: the other processes that have opened it lock it too, as with `keyhole lock`. One that does not answer keeps
  /// none of the others open.
  private static func lockOthers(_ places: StoragePaths) {
    let others = MountRegistration.allServing(vault: places.vault, in: places.runtime).filter {
      $0.process != CurrentProcess.number && $0.isAlive && !$0.isStopped
    }
    for other in others { _ = try? ControlClient.ask(other.process, in: places.runtime, .lock) }
  }
}
