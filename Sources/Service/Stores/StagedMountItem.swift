import KeychainSelection
import Model
import Platform
import SecretMemory
import Store
import Tree

/// The folder of an item that waits for its secret in a running mount. The mount alone knows the attributes that were set on it,
/// among them flags and rules: so the secret has to be written there.
struct StagedMountItem {
  private let folder: String

  /// nil: the path is that of no secret, the item is stored, or no mount that can answer has such a folder.
  init?(ofValueAt path: TreePath, in session: TreeSession) {
    guard path.parent.isItem, path.name == "value", let keychain = session.stores.keychain,
      // A look-up in a locked keychain would ask a person.
      keychain.engine.locking.lockState == .open,
      let places = try? StoragePaths.ofMount(),
      let mount = MountRegistration.newest(in: places.runtime), !mount.isStopped
    else { return nil }
    let folder = mount.path + "/" + path.parent.string
    let isThere = Background.result(within: .seconds(2)) { (try? Files.fileSystem(of: folder)) == Files.fuse }
    guard isThere == true, (try? session.existingNode(at: path)) == nil else { return nil }
    self.folder = folder
  }

  /// Stores the secret with all that waits for it. The mount may ask a person.
  func write(_ bytes: Span<UInt8>) throws(StoreError) {
    // The kernel pins the pages of what is written to a secret.
    guard var copy = try? SecretBytes(pinnable: bytes.count) else { throw .outOfMemory }
    var target = copy.mutableSpan
    for index in bytes.indices { target[index] = bytes[index] }
    let content = copy.span
    do throws(Errno) {
      try MountedFile.write(content, to: folder + "/value", [.create])
    } catch {
      switch error {
      case .ENOKEY: throw .locked
      case .EACCES, .EPERM:
        throw .accessDenied(reason: "the mount refused it; `keyhole status` has the reason")
      case .ETIMEDOUT: throw .timedOut
      case .EKEYREJECTED: throw .rejected
      default: throw StoreError(error, "write \(folder)/value")
      }
    }
  }

  /// That an attribute is set where the others are.
  func refusal(of name: String, _ value: String) -> Failure {
    Failure(
      folder,
      "this folder waits for the item's secret, with attributes of its own; set the attribute there too: "
        + "`setfattr -n \(name) -v \(value.quotedForShell) \(folder.quotedForShell)`. Nothing was stored")
  }
}
