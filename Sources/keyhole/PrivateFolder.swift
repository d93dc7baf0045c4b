import Dispatch
import Fuse
import Glibc
import Home
import Model
import Mount
import SecretMemory
import Store
import Tree

/// A folder whose files live in locked memory, for programs that can edit nothing but files.
///
/// It is a mount of its own, of a keychain without items: in the folder of an item that is only staged, all
/// is scratch.
final class PrivateFolder {
  /// Where programs find it.
  let path: String
  private let mountPoint: String
  private let tree: Tree
  private let folder: Node
  private let kernelTree: KernelTree
  private let session: Session

  private static let prefix = "edit."

  /// - Throws: `Failure` where nothing can be mounted.
  init(_ places: Places, _ settings: SettingsStore) throws {
    UserFolders.make(places.runtime)
    Self.removeLeftovers(places)
    mountPoint = "\(places.runtime)/\(Self.prefix)\(getpid())"
    path = mountPoint + "/keychain/generic/keyhole/edit"
    tree = Tree(settings: settings, keychain: KeychainStore(engine: NoItems()))
    kernelTree = KernelTree(tree)
    do throws(StoreError) { folder = try Self.stageItem(tree) } catch { throw Failure(mountPoint, error) }
    unsafe mkdir(mountPoint, 0o700)
    do throws(SessionError) {
      session = try Session(kernelTree, options: MountOptions().sessionOptions)
      try session.mount(at: mountPoint)
    } catch {
      unsafe rmdir(mountPoint)
      throw Failure(nil, "there is no memory to edit in: \(error.description)")
    }
    kernelTree.connect(session.notifier)
    DispatchQueue(label: "keyhole.private-folder").async { [session] in try? session.run() }
  }

  func remove() {
    session.unmount()
    kernelTree.finish()
    unsafe rmdir(mountPoint)
  }

  func file(named name: String) throws -> PrivateFile {
    PrivateFile(path: "\(path)/\(name)", name: name, folder: folder, tree: tree)
  }

  private static func stageItem(_ tree: Tree) throws(StoreError) -> Node {
    var node = tree.root
    for name in ["keychain", "generic"] { node = try tree.child(of: node, named: name.utf8) }
    for name in ["keyhole", "edit"] { node = try tree.makeDirectory(name.utf8, in: node) }
    return node
  }

  /// The mounts of commands that were killed. What was in them is gone with their memory.
  private static func removeLeftovers(_ places: Places) {
    for name in names(in: places.runtime) where name.hasPrefix(prefix) {
      guard let process = Int32(name.dropFirst(prefix.count)), kill(process, 0) != 0, errno == ESRCH else {
        continue
      }
      let path = "\(places.runtime)/\(name)"
      try? Unmounting.take(path, lazily: true)
      unsafe rmdir(path)
    }
  }
}

/// A file of a `PrivateFolder`.
struct PrivateFile {
  let path: String
  fileprivate let name: String
  fileprivate let folder: Node
  fileprivate let tree: Tree

  func write(_ bytes: UnsafeRawBufferPointer) throws {
    do throws(StoreError) {
      let handle = try tree.create(
        name.utf8, in: folder, [.write, .truncate], exclusive: false, by: .current)
      defer { handle.close() }
      try unsafe handle.write(bytes, at: 0, by: .current)
    } catch {
      throw Failure(path, error)
    }
  }

  /// What the file holds now; nothing where the program did not make it.
  func read() throws -> SecretBytes {
    var copy = try SecretBytes()
    do throws(StoreError) {
      let node = try tree.child(of: folder, named: name.utf8)
      let handle = try tree.open(node, .read, by: .current)
      defer { handle.close() }
      var failure: SecretMemoryError?
      try unsafe handle.read(at: 0, count: .max) { bytes in
        do throws(SecretMemoryError) { try unsafe copy.append(bytes) } catch { failure = error }
      }
      if failure != nil { throw .outOfMemory }
    } catch {
      guard error != .notFound else { return try SecretBytes() }
      throw Failure(path, error)
    }
    return copy
  }
}

/// A keychain that has no items and takes none.
private struct NoItems: KeychainEngine {
  private static let refusal = StoreError.readOnly(reason: "only scratch files can be here")

  let name = "none"

  func items() -> [Item] { [] }
  func refresh() -> [Item]? { nil }
  func secret(of item: ItemID) throws(StoreError) -> SecretBytes { throw .notFound }
  func add(_ item: Item, secret: borrowing SecretBytes) throws(StoreError) -> Item { throw Self.refusal }
  func update(_ items: [ItemID], _ body: (inout Item) throws(StoreError) -> Void) -> [Item] { [] }
  func rewrite(
    _ item: ItemID, readingSecret: Bool,
    _ body: (inout Item, inout SecretBytes) throws(StoreError) -> Void
  ) throws(StoreError) -> Item { throw .notFound }
  func remove(_ items: [ItemID]) {}
  func synchronize() {}
  func room() -> DiskRoom? { nil }
  func problems() -> [Problem] { [] }
}
