import Cluster
package import ClusterAccess
import KeychainSelection
import Layers
import Model
import Platform
import Store
import Suites

/// The store of the mount option `store=`, opened by the process of the mount, and what of it is shown.
final class MountedCluster: Sendable {
  let opened: OpenedCluster
  let options: ClusterOptions

  /// nil: there is no such option. - Throws: `Failure` with what to do where the store can't be opened.
  init?(_ options: MountOptions, _ places: StoragePaths) throws {
    guard let cluster = options.cluster else { return nil }
    self.options = cluster
    showsKeychain = options.keychain.choice == .cluster
    do throws(StoreError) {
      opened = try OpenedCluster(
        cluster.address, cluster.login, places.clusters, offlineDays: cluster.offlineDays,
        propertyLists: PropertyLists())
      layered = try Self.layers(cluster, opened.suites)
      if layered != nil { opened.setTombstone(SettingLayers.tombstone) }
    } catch .notFound {
      throw Failure(
        cluster.address.text,
        "this device has no keys for this store; `keyhole cluster init` makes a store, "
          + "`keyhole cluster join` asks to belong to one")
    } catch {
      throw Failure(cluster.address.text, error)
    }
  }

  private static func layers(
    _ options: ClusterOptions, _ suites: any SuiteEngine
  ) throws(StoreError) -> LayeredSuites? {
    guard let last = options.layers.last else { return nil }
    let layers = try options.layers.map { (name) throws(StoreError) in try SettingLayer(name, in: suites) }
    return try LayeredSuites(layers, writing: options.writtenLayer ?? last)
  }

  /// nil: the settings are those of this machine.
  var suites: (any SuiteEngine)? {
    guard options.showsSettings else { return nil }
    return layered ?? opened.suites
  }
  /// nil: there are no layers.
  private let layered: LayeredSuites?

  /// The address of the settings, as a mount notes it; nil: they are those of this machine.
  var settings: String? { options.showsSettings ? opened.address.text : nil }

  /// Whether the keychain that is shown is another one.
  var isBesideKeychain: Bool { !showsKeychain }

  /// The record of this device, which its passphrase opens.
  var deviceRecord: [UInt8] { opened.store.deviceRecord }

  private let showsKeychain: Bool

  /// nil: the keychain is another one.
  func openedKeychain(_ opening: KeychainConfiguration) -> OpenedKeychain? {
    guard opening.choice == .cluster else { return nil }
    return OpenedKeychain(engine: opened.keychain, explanation: "that of \(opened.address.text)")
  }

  /// The stores are notified of the changes of others from now on.
  func follow(_ stores: Stores) {
    let (settings, keychain) = (stores.settings, stores.keychain)
    let (hasSettings, keepHistory) = (options.showsSettings, stores.keepHistory)
    let hasKeychain = keychain?.engine.name == KeychainChoice.cluster.rawValue
    opened.follow { [layered] stored in
      guard hasSettings else { return }
      for suite in layered?.suites(stored: stored) ?? [stored] { settings.refresh(suite) }
    } items: {
      if hasKeychain { try? keychain?.refresh() }
    } opened: {
      if hasSettings {
        keepHistory()
        settings.refreshAll()
      }
      if hasKeychain { try? keychain?.load() }
    }
  }

  /// Opens it where a passphrase is not wanted, or where a credential of the process is one.
  func begin() {
    opened.begin(options.passphrase?.take())
  }

  func close() { opened.close() }
}

extension StoragePaths {
  /// The files for stores in clusters.
  package var clusters: ClusterFolders { ClusterFolders(data: data, state: state) }
}
