import Control
import KeychainSelection
package import Model
import Store
import Suites
import Tree

/// The settings of this machine and those of a cluster's store, as its mount's process reaches them, and the move from one to the other.
package struct SettingsMove {
  package enum Direction: Sendable {
    case toCluster
    case fromCluster
  }

  package let migration: SettingsMigration

  /// - Throws: `Failure` where no mount shows settings of a cluster, or shows them in layers.
  package init(_ direction: Direction, _ places: StoragePaths) throws {
    let nothing = OpenedKeychain(engine: nil, explanation: "")
    let own = try Stores(places, nothing, KeychainConfiguration(choice: .none))
    let files = SettingsMigration.Side.files(own.settings.engine)
    let cluster = SettingsMigration.Side.cluster(try places.suitesOfCluster(direction))
    switch direction {
    case .toCluster: migration = SettingsMigration(from: files, to: cluster)
    case .fromCluster: migration = SettingsMigration(from: cluster, to: files)
    }
  }

  /// Where a suite stands in the tree.
  package static func path(_ suite: ExactString) -> String { "defaults/\(PathName(suite).string)" }
}

extension StoragePaths {
  /// The settings of the mount that shows those of a cluster.
  ///
  /// - Throws: `Failure` where there is none; for a move from it also where it shows settings in layers, which are of several suites each.
  fileprivate func suitesOfCluster(_ direction: SettingsMove.Direction) throws -> any SuiteEngine {
    let runtime = runtime
    func find() -> MountRegistration? {
      MountRegistration.serving(in: runtime).last { !$0.isService && $0.hasRemoteSettings }
    }
    guard let mount = find() else {
      throw Failure(
        "the cluster",
        "its settings are there only while they are mounted; `keyhole mount -o store=etcd://HOST:PORT/STORE` "
          + "mounts them")
    }
    let process = mount.process
    let suites = MountedSuites(propertyLists: PropertyLists(), runtimeFolder: runtime) { process }
    let layers: [String]
    do throws(StoreError) { layers = try suites.layers() } catch { throw Failure(mount.path, error) }
    // Those that are moved to it are in the layer that is written.
    guard layers.isEmpty || direction == .toCluster else {
      throw Failure(
        mount.path,
        "it shows settings in layers, which other machines have too: they stay. A mount of the store without `layers=` moves the suites of no layer"
      )
    }
    return suites
  }
}
