import Dispatch
import Fuse
import Model
import Mount
import Platform
import Store
import Tree

/// A folder whose files live in locked memory, for a program that can edit nothing but files.
///
/// It is a mount of its own, of a keychain without items: in the folder of an item that is only staged, every file is
/// scratch. Only this process and what it has started may use a name in it (`Caller.descends`).
package final class PrivateFolder: Sendable {
  /// Where programs find it.
  package let path: String
  private let tree: FileTree
  private let folder: Node
  private let mount: TreeFileSystem
  private let fileSystem: PrivateFileSystem
  private let session: Session
  /// A process of a session of its own, which reads from a pipe that this process keeps open until its end.
  private let cleaner: Int32
  /// Programs that were kept out, with their processes.
  private let refused: RefusedPrograms

  private static let prefix = "edit."

  /// - Throws: `Failure` where nothing can be mounted.
  package init(_ places: StoragePaths) throws {
    if let problem = RuntimeFolder.make(places.runtime) { throw Failure(places.runtime, problem) }
    Self.removeLeftovers(places)
    path = "\(places.runtime)/\(Self.prefix)\(CurrentProcess.number)"
    tree = FileTree(settings: SettingsStore(engine: NoSuites()), keychain: KeychainStore(engine: NoItems()))
    do throws(StoreError) { folder = try Self.stageItem(tree) } catch { throw Failure(path, error) }
    mount = TreeFileSystem(tree)
    refused = RefusedPrograms()
    fileSystem = PrivateFileSystem(mount, folder: folder, admitting: try Self.admission(refused))
    try? Files.makeFolder(path)
    let cleaner = try Self.cleaner(of: path)
    self.cleaner = cleaner.process
    do throws(SessionError) { session = try Self.mount(fileSystem, at: path) } catch {
      cleaner.end()
      try? Files.removeFolder(path)
      throw Failure(nil, "there is no memory to edit in: \(error.description)")
    }
    mount.connect(session.invalidator)
    DispatchQueue(label: "keyhole.private-folder").async { [session] in try? session.run() }
  }

  package func remove() {
    session.unmount()
    seal()
    try? Files.removeFolder(path)
    ProcessNumber.send(.kill, toGroup: cleaner)
  }

  /// Wipes every file, and lets no program use one any more.
  package func seal() { fileSystem.seal() }

  package var isSealed: Bool { fileSystem.isSealed }

  /// The programs that were refused, for a message; nil: none.
  package var refusedPrograms: String? { refused.text }

  package func file(named name: String) -> PrivateFile {
    PrivateFile(path: "\(path)/\(name)", name: name, folder: folder, tree: tree)
  }

  private static func stageItem(_ tree: FileTree) throws(StoreError) -> Node {
    var node = tree.root
    for name in ["keychain", "generic"] { node = try tree.child(of: node, named: name.utf8) }
    for name in ["keyhole", "edit"] { node = try tree.makeDirectory(name.utf8, in: node) }
    return node
  }

  /// Lets this process in and all that descend from it, which stay its descendants: it adopts their orphans.
  private static func admission(_ refused: RefusedPrograms) throws -> @Sendable (Caller) -> Bool {
    let refusal = { (error: Errno) in
      Failure(nil, "the editor's processes can't be recognised: \(error)")
    }
    do throws(Errno) { try CurrentProcess.adoptOrphans() } catch { throw refusal(error) }
    guard let own = Caller.current.identity().process else { throw refusal(.current) }
    return { caller in
      if caller.descends(from: own) { return true }
      refused.note(caller)
      return false
    }
  }
}

// MARK: - Mounting

extension PrivateFolder {
  private static func mount(
    _ fileSystem: PrivateFileSystem, at path: String
  ) throws(SessionError) -> Session {
    let session = try Session(fileSystem, options: MountOptions().sessionOptions)
    try session.mount(at: path)
    return session
  }

  /// A shell that waits for the end of this process, however it ends, and then unmounts. It has a session of its own, so
  /// that no signal of the terminal ends it. The option `auto_unmount` of fusermount3(1) does this for mounts only that
  /// other users may see.
  private static func cleaner(of path: String) throws -> Child {
    let script = """
      trap '' HUP INT QUIT TERM; exec 2> /dev/null; read line
      fusermount3 -u -q -z -- "$0" || umount -l -- "$0"; rmdir -- "$0"
      """
    do throws(SpawnFailure) { return try Child(["/bin/sh", "-c", script, path], input: .piped) } catch {
      throw Failure(error.program, error.reason)
    }
  }

  /// The mounts of commands that were killed. What was in them is gone with their memory.
  private static func removeLeftovers(_ places: StoragePaths) {
    for name in names(in: places.runtime) where name.hasPrefix(prefix) {
      guard let process = Int32(name.dropFirst(prefix.count)), hasEnded(process) else { continue }
      let path = "\(places.runtime)/\(name)"
      try? Unmounting.take(path, lazily: true)
      try? Files.removeFolder(path)
    }
  }

  /// Whether a mount point is the folder of an edit: `…/edit.PID`.
  static func isOne(_ path: String) -> Bool {
    let name = path.split(separator: "/").last ?? ""
    return name.hasPrefix(prefix) && Int32(name.dropFirst(prefix.count)) != nil
  }

  /// Of an earlier process with this one's number too.
  private static func hasEnded(_ process: Int32) -> Bool {
    process == CurrentProcess.number || !ProcessNumber.isTaken(process)
  }
}
