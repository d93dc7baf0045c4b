import Control
import KeychainSelection
import Model
import Platform
import SecretMemory
import Store
package import Tree

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

  /// The error of a command that works on attributes of stored items.
  fileprivate func failure(_ path: TreePath) -> Failure {
    let name = folder.quotedForShell
    return Failure(
      path.string,
      "its folder waits in the mount for the secret: `getfattr -d \(name)` prints the attributes that wait with it, "
        + "`setfattr -n NAME -v VALUE \(name)` sets one, and "
        + "`keyhole set \(path.string.quotedForShell)` stores the item",
      .notFound)
  }
}

extension TreeSession {
  /// An item, a key or a folder that is stored.
  ///
  /// - Throws: `Failure`, which says of the folder of an item that waits for its secret in a mount where its attributes are.
  package func storedNode(at path: TreePath) throws -> Node {
    do { return try node(at: path) } catch let failure as Failure where failure.kind == .notFound {
      guard path.isItem, let staged = StagedMountItem(ofValueAt: path.ofValue, in: self) else {
        throw failure
      }
      throw staged.failure(path)
    }
  }
}
