import Dispatch
import Fuse
import Model
import Platform
import Store
import Synchronization
public import Tree

/// The tree for the kernel: each operation is one call of `FileTree`, and one reply.
///
/// An operation that only reads memory is answered on the worker that took the request. One that may wait for a disk, a
/// lock of another process or a person parks its reply and runs elsewhere (`performAsync`, `withAccess`), so it holds up no
/// worker. ``KernelCache`` has the rule of what the kernel may cache.
public final class TreeFileSystem: Sendable {
  let tree: FileTree
  let cache: KernelCache
  let replay: MountReplay
  let waiting = WaitingOperations()
  let progress = Mutex<ChangeProgress?>(nil)
  let openFiles = Mutex(OpenFileCount())
  /// The latest refusals, for `keyhole status`.
  public let refusals = Refusals()
  /// The latest operations that took long, for `keyhole status`.
  public let delays = Delays()

  /// The tree to show. The kernel's cache is not notified before a session is attached.
  public init(_ tree: FileTree) {
    self.tree = tree
    cache = KernelCache(tree)
    replay = MountReplay(tree, cache)
  }

  func node(_ id: NodeID) throws(StoreError) -> Node {
    // A number that was handed out and is gone: the file was deleted elsewhere.
    guard let node = tree.node(id.rawValue) else { throw .notFound }
    return node
  }

  /// Answers with the error's number, and remembers the reason for `keyhole status`.
  func fail<Answer: ~Copyable>(
    _ reply: consuming Reply<Answer>, _ error: StoreError, _ subject: Subject
  ) {
    if error == .notFound, subject.onMissing == .isStale { return _ = reply.fail(.ESTALE) }
    refusals.note(path: path(of: subject), error)
    reply.fail(Errno(error))
  }

  /// From the top of the tree; empty: the node is not known any more.
  func path(of subject: Subject) -> String {
    guard let entry = subject.entry else { return path(of: subject.node) }
    let directory = path(of: entry.directory)
    return (directory.isEmpty ? "" : directory + "/") + String(decoding: entry.bytes, as: UTF8.self)
  }

  private func path(of node: NodeID) -> String { tree.node(node.rawValue)?.path ?? "" }
}
