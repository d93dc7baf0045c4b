import ClusterAccess
import KeychainSelection
import Model

extension MountOptions {
  /// Puts the options of a cluster together. Both settings and keychain are those of its store, where nothing else is said.
  ///
  /// - Throws: `UsageError`.
  mutating func applyCluster() throws {
    guard let store = ofCluster["store"] else {
      if let name = ofCluster.keys.min() {
        throw UsageError(message: "mount option `\(name)`: it needs `store=etcd://HOST:PORT/STORE`")
      }
      guard keychain.choice != .cluster else {
        throw UsageError(message: "mount option `keychain=cluster`: it needs `store=etcd://HOST:PORT/STORE`")
      }
      return
    }
    guard let address = ClusterAddress(store) else {
      throw UsageError(
        message: "mount option `store=\(store.abbreviated)`: it takes `etcd://HOST:PORT[,HOST:PORT…]/STORE`")
    }
    var options = ClusterOptions(address)
    for option in ClusterOption.allCases {
      if let value = ofCluster[option.rawValue] { options.address.set(option, value) }
    }
    if let problem = options.address.problem {
      throw UsageError(message: "mount option `store=`: \(problem)")
    }
    options.showsSettings = try showsSettings()
    if !choosesKeychain { keychain.choice = .cluster }
    guard options.showsSettings || keychain.choice == .cluster else {
      throw UsageError(
        message: "mount option `store=`: neither settings nor the keychain are to be shown of it")
    }
    options.offlineDays = try offlineDays()
    options.passwordDescriptor = try passwordDescriptor()
    try applyLayers(&options)
    cluster = options
  }

  /// Where the settings are: a folder, or the address of a store.
  func settingsPlace(_ places: StoragePaths) -> String {
    guard let cluster, cluster.showsSettings else { return places.configuration }
    return cluster.address.text
  }

  private func showsSettings() throws -> Bool {
    switch ofCluster["settings"] {
    case nil, "cluster"?: return true
    case "files"?: return false
    case let other?:
      throw UsageError(
        message: "mount option `settings=\(other.abbreviated)`: it is one of cluster, files")
    }
  }

  private func applyLayers(_ options: inout ClusterOptions) throws {
    guard let names = ofCluster["layers"] else {
      guard ofCluster["write-layer"] == nil else {
        throw UsageError(message: "mount option `write-layer=`: it needs `layers=`")
      }
      return
    }
    guard options.showsSettings else {
      throw UsageError(
        message: "mount option `layers=`: it needs the settings of the store, not `settings=files`")
    }
    options.layers = names.split(separator: ",").map(String.init)
    options.writtenLayer = ofCluster["write-layer"]
    guard options.layers.allSatisfy({ $0.contains("/") }), Set(options.layers).count == options.layers.count
    else {
      throw UsageError(
        message:
          "mount option `layers=\(names.abbreviated)`: it takes different names with `/` in them, the lowest first: "
          + "`layers=fleet/all,host/NAME`")
    }
    if let written = options.writtenLayer, !options.layers.contains(written) {
      throw UsageError(message: "mount option `write-layer=\(written.abbreviated)`: it is one of `layers=`")
    }
  }

  private func offlineDays() throws -> Int? {
    guard let text = ofCluster["offline-secrets"] else { return nil }
    let allowed = ClusterOptions.allowedOfflineDays
    guard let days = Int(text), allowed.contains(days) else {
      throw UsageError(
        message: "mount option `offline-secrets=\(text.abbreviated)`: it takes \(allowed.lowerBound) to "
          + "\(allowed.upperBound) days")
    }
    guard keychain.choice == .cluster else {
      throw UsageError(message: "mount option `offline-secrets`: it needs the keychain of the store")
    }
    return days
  }

  private func passwordDescriptor() throws -> Int32? {
    guard let text = ofCluster["etcd-password-descriptor"] else { return nil }
    guard let number = Int32(text), number >= 0 else {
      throw UsageError(
        message:
          "mount option `etcd-password-descriptor=\(text.abbreviated)`: it takes the number of a descriptor")
    }
    return number
  }
}
