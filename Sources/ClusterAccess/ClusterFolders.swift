package import Cluster
package import Model
import Platform

/// The files of this user's for stores in clusters.
///
/// For each store a folder: the device's keys and the address beside the vault; the file of what was seen, and that of the copy of the
/// keychain, in the state folder, which a copy of the first does not bring back.
package struct ClusterFolders: Sendable {
  private let data: String
  private let state: String

  /// `data`, `state`: the folders of the user.
  package init(data: String, state: String) {
    (self.data, self.state) = (data + "/clusters", state + "/clusters")
  }

  package func files(of store: String) -> DeviceFiles {
    DeviceFiles(
      device: "\(data)/\(store).device", seen: "\(state)/\(store).seen",
      offline: "\(state)/\(store).offline")
  }

  private func addressFile(_ store: String) -> String { "\(data)/\(store).address" }

  /// Whether this device has keys for a store, as a member or as a device that asks to be one.
  package func hasDevice(for store: String) -> Bool { Files.hasName(files(of: store).device) }

  /// Whether this device has confirmed the store's code.
  package func hasConfirmed(_ store: String) -> Bool { Files.hasName(files(of: store).seen) }

  /// Makes the folders.
  package func make() {
    UserFolders.make(data)
    UserFolders.make(state)
  }

  /// The stores for which this device has keys; where there is none, those of which it has forgotten them.
  package var stores: [String] {
    let names = names(in: data)
    func stores(_ ending: String) -> [String] {
      names.filter { $0.hasSuffix(ending) }.map { String($0.dropLast(ending.count)) }.sorted()
    }
    let present = stores(".device")
    return present.isEmpty ? stores(".address") : present
  }

  /// The address by which a store was used last; nil: it is not known.
  package func address(of store: String) -> ClusterAddress? {
    ClusterAddress(lines: readFile(addressFile(store)).split(separator: "\n"))
  }

  /// Notes the address of a store, for commands that name none.
  package func note(_ address: ClusterAddress) throws(StoreError) {
    let text = address.lines.map { $0 + "\n" }.joined()
    do throws(Errno) {
      let file = try Descriptor(addressFile(address.store), [.writing, .create, .truncate, .noFollow])
      try file.write(Array(text.utf8))
    } catch {
      throw StoreError(error, "write \(addressFile(address.store))")
    }
  }

  /// Notes the address by which a store was reached, where it is another one than is noted. Its files may have been moved.
  package func noteUse(of address: ClusterAddress) {
    guard hasDevice(for: address.store), self.address(of: address.store) != address else { return }
    // Without it, the next command needs the options again.
    try? note(address)
  }

  /// Forgets a device that does not belong to the store.
  package func forgetDevice(of store: String) {
    let files = files(of: store)
    for path in [files.device, files.seen, files.offline] { _ = try? Files.remove(path) }
  }

  /// Removes the copy of a store's keychain on this device.
  func removeOfflineCopy(of store: String) { _ = try? Files.remove(files(of: store).offline) }
}
