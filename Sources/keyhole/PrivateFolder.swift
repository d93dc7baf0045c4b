import CSystem
import Dispatch
import Fuse
import Glibc
import Model
import Mount
import Platform
import SecretMemory
import Store
import Synchronization
import Tree

/// A folder whose files live in locked memory, for a program that can edit nothing but files.
///
/// It is a mount of its own, of a keychain without items: in the folder of an item that is only staged, every file is
/// scratch. Only this process and what it has started may use a name in it (`Caller.descends`).
final class PrivateFolder: Sendable {
  /// Where programs find it.
  let path: String
  private let tree: FileTree
  private let folder: Node
  private let mount: TreeFileSystem
  private let fileSystem: PrivateFileSystem
  private let session: Session
  /// A process of a session of its own, which reads from a pipe that this process keeps open until its end.
  private let cleaner: pid_t
  /// Programs that were kept out, with their processes.
  private let refused: Refused

  private static let prefix = "edit."

  /// - Throws: `Failure` where nothing can be mounted.
  init(_ places: StoragePaths) throws {
    if let problem = RuntimeFolder.make(places.runtime) { throw Failure(places.runtime, problem) }
    Self.removeLeftovers(places)
    path = "\(places.runtime)/\(Self.prefix)\(getpid())"
    tree = FileTree(settings: SettingsStore(engine: NoSuites()), keychain: KeychainStore(engine: NoItems()))
    do throws(StoreError) { folder = try Self.stageItem(tree) } catch { throw Failure(path, error) }
    mount = TreeFileSystem(tree)
    refused = Refused()
    fileSystem = PrivateFileSystem(mount, folder: folder, admitting: try Self.admission(refused))
    unsafe mkdir(path, 0o700)
    let cleaner = try Self.cleaner(of: path)
    self.cleaner = cleaner.process
    do throws(SessionError) { session = try Self.mount(fileSystem, at: path) } catch {
      cleaner.end()
      unsafe rmdir(path)
      throw Failure(nil, "there is no memory to edit in: \(error.description)")
    }
    mount.connect(session.invalidator)
    DispatchQueue(label: "keyhole.private-folder").async { [session] in try? session.run() }
  }

  func remove() {
    session.unmount()
    seal()
    unsafe rmdir(path)
    kill(-cleaner, SIGKILL)
  }

  /// Wipes every file, and lets no program use one any more.
  func seal() { fileSystem.seal() }

  var isSealed: Bool { fileSystem.isSealed }

  /// The programs that were refused, for a message; nil: none.
  var refusedPrograms: String? { refused.text }

  func file(named name: String) -> PrivateFile {
    PrivateFile(path: "\(path)/\(name)", name: name, folder: folder, tree: tree)
  }

  private static func stageItem(_ tree: FileTree) throws(StoreError) -> Node {
    var node = tree.root
    for name in ["keychain", "generic"] { node = try tree.child(of: node, named: name.utf8) }
    for name in ["keyhole", "edit"] { node = try tree.makeDirectory(name.utf8, in: node) }
    return node
  }

  /// Lets this process in and all that descend from it, which stay its descendants: it adopts their orphans.
  private static func admission(_ refused: Refused) throws -> @Sendable (Caller) -> Bool {
    guard linux_adopt_orphans() == 0, let own = Caller.current.identity().process else {
      throw Failure(nil, "the editor's processes can't be recognised: \(systemMessage(errno))")
    }
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
    return try Child(["/bin/sh", "-c", script, path], input: .piped)
  }

  /// The mounts of commands that were killed. What was in them is gone with their memory.
  private static func removeLeftovers(_ places: StoragePaths) {
    for name in names(in: places.runtime) where name.hasPrefix(prefix) {
      guard let process = Int32(name.dropFirst(prefix.count)), hasEnded(process) else { continue }
      let path = "\(places.runtime)/\(name)"
      try? Unmounting.take(path, lazily: true)
      unsafe rmdir(path)
    }
  }

  /// Whether a mount point is the folder of an edit: `…/edit.PID`.
  static func isOne(_ path: String) -> Bool {
    let name = path.split(separator: "/").last ?? ""
    return name.hasPrefix(prefix) && Int32(name.dropFirst(prefix.count)) != nil
  }

  /// Of an earlier process with this one's number too.
  private static func hasEnded(_ process: Int32) -> Bool {
    process == getpid() || kill(process, 0) != 0 && errno == ESRCH
  }
}

/// Programs that were kept out of a folder.
private final class Refused: Sendable {
  private static let limit = 4
  private let programs = Mutex<[String]>([])

  func note(_ caller: Caller) {
    let identity = caller.identity()
    let process = identity.process.map { " (process \($0.number))" } ?? ""
    let program = identity.programName + process
    programs.withLock { programs in
      if programs.count < Self.limit, !programs.contains(program) { programs.append(program) }
    }
  }

  var text: String? {
    programs.withLock { $0.isEmpty ? nil : $0.joined(separator: ", ") }
  }
}

/// A file of a `PrivateFolder`.
struct PrivateFile {
  let path: String
  fileprivate let name: String
  fileprivate let folder: Node
  fileprivate let tree: FileTree

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

  /// Whether it has its name.
  var isThere: Bool { (try? tree.child(of: folder, named: name.utf8)) != nil }

  /// What the file holds now; nothing where the program did not make it, or the folder was sealed.
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
