import Fuse
import Model
import Platform
public import Store
import Synchronization
public import Tree

/// One folder of a tree as a file system of its own, for some processes of the user only.
///
/// The folder is the root, and the kernel learns of no other. A process is looked at when it uses a name: to look up, to
/// open, to list, to change. What it opened then belongs to the open file, as POSIX has it. Every process may see the root's
/// status and the room (statfs(2)), which mount(8) and `ls` of the folder around it ask for; the rest is EACCES.
///
/// After `seal()` everything is ENOKEY, and nothing is in memory any more.
public final class PrivateFileSystem: Sendable {
  let tree: TreeFileSystem
  private let folder: NodeID
  private let admits: @Sendable (Caller) -> Bool
  private let sealed = Atomic(false)

  /// `admits` is asked on the threads of the mount, and must not use it.
  public init(_ tree: TreeFileSystem, folder: Node, admitting admits: @escaping @Sendable (Caller) -> Bool) {
    (self.tree, self.folder, self.admits) = (tree, NodeID(rawValue: folder.number), admits)
  }

  /// Wipes all files, also those that are open or mapped, and refuses every later call.
  public func seal() {
    sealed.store(true, ordering: .sequentiallyConsistent)
    let open = tree.tree.openSecrets
    try? tree.tree.lock()
    tree.cache.dropPages(of: open)
  }

  /// Content that is read while this is false was not wiped before.
  public var isSealed: Bool { sealed.load(ordering: .sequentiallyConsistent) }
}

extension PrivateFileSystem {
  /// The kernel's number of a node as the tree's.
  func node(_ id: NodeID) -> NodeID { id == .root ? folder : id }

  /// Why an open file can't be used; nil: it can.
  var refusal: Errno? { isSealed ? .ENOKEY : nil }

  /// Why a process can't use a name; nil: it can.
  func refusal(_ request: Request) -> Errno? {
    if isSealed { return .ENOKEY }
    return admits(request.caller) ? nil : .EACCES
  }
}
