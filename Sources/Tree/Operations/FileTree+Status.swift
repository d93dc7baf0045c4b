public import Model
import Notifier
public import Store
import Synchronization

/// The attributes of a file that stat(2) returns.
public struct NodeStatus: Sendable {
  /// The type of a file, of the three that the tree has.
  public enum Kind: Sendable {
    case directory
    case file
    case symbolicLink
  }

  /// Directory, file or symbolic link (`st_mode`).
  public var kind: Kind
  /// The exact length of the content in bytes; 0 for a directory.
  public var size: Int
  /// When the content changed last (`st_mtim`).
  public var modified: Timestamp
  /// When it was last read: what was set as such, or else the time of the last change. Reading doesn't change it.
  public var accessed: Timestamp?
  /// The number of hard links: 2 and one for each subdirectory, or 1.
  public var links: Int
  /// Which value of a key the size is that of, as `Handle.version`; 0: it is no stored value of a key.
  public var version: UInt64 = 0
}

extension FileTree {
  /// - Throws: `notFound` for what is gone; `locked`, `unreachable`.
  public func status(of node: Node, for caller: Caller) throws(StoreError) -> NodeStatus {
    let (place, writers, last) = node.state.withLock { state in
      (state.place, Array(state.writers.values), state.isRemoved ? state.lastStatus : nil)
    }
    if var last, last.kind != .directory {
      last.links = 0
      for writer in writers {
        if let size = writer.uncommittedSize(for: caller) { last.size = size }
      }
      return last
    }
    var status = try status(of: place)
    // Not with what only one process has written.
    node.state.withLock { state in
      status.accessed = state.accessed
      state.lastStatus = status
    }
    for writer in writers {
      if let size = writer.uncommittedSize(for: caller) { status.size = size }
    }
    return status
  }

  private func status(of place: Place) throws(StoreError) -> NodeStatus {
    switch place {
    case .root: directory(subdirectories: (keychain == nil ? 1 : 2) + viewFolders.count)
    case .control: directory(subdirectories: 1)
    case .history(let place): try status(of: place)
    case .defaults: directory(subdirectories: try settings.suiteNames().count)
    case .suite(let name): try statusOfSuite(name)
    case .keychain:
      directory(
        subdirectories: ItemClass.allCases.count, modified: latestChange(inClasses: ItemClass.allCases))
    case .itemClass(let itemClass):
      directory(
        subdirectories: classIsKnown ? (try? count(in: place)) ?? 0 : 0,
        modified: latestChange(inClasses: [itemClass]))
    case .folder(let folder):
      directory(
        subdirectories: isBeingRead ? 0 : try count(in: place),
        modified: isBeingRead ? nil : try latestChange(in: folder))
    case .item(let item): directory(modified: try anyItem(item).modified)
    case .status: file(size: options.status().count, modified: .now)
    case .events: file(size: events.end, modified: events.modified)
    case .key(let key): try status(of: key)
    case .value(let item), .otpauth(let item): try statusOfSecret(place, item)
    case .code(let item): try statusOfCode(item)
    case .view(.folder): directory()
    case .view(.file(let folder, let name)): try status(ofView: name, in: folder)
    case .scratch(let scratch): try status(of: scratch)
    }
  }

  /// The classes are always there: neither a locked keychain nor one that hangs keeps them from being shown.
  private var classIsKnown: Bool {
    guard let keychain else { return false }
    return keychain.isLoaded || !(keychain.mayBlock || keychain.isLoading)
  }

  /// nil: there are no items, or they are not known.
  private func latestChange(inClasses classes: [ItemClass]) -> Timestamp? {
    guard classIsKnown else { return nil }
    return classes.compactMap { try? keychain?.latestChange(in: nil, of: $0) }.max()
  }

  private func latestChange(in folder: FolderPlace) throws(StoreError) -> Timestamp? {
    guard let plain = try plainFolder(folder) else { return nil }
    return try requireKeychain().latestChange(in: plain, of: folder.itemClass)
  }

  /// How many items there are is not known yet: a look at a directory does not wait for that.
  private var isBeingRead: Bool { keychain?.isLoading == true }

  private func statusOfSuite(_ name: ExactString) throws(StoreError) -> NodeStatus {
    if let stamp = try settings.suite(name).provenStamp() { return directory(modified: stamp.modified) }
    guard let snapshot = try settings.suite(name).fetch() else { throw .notFound }
    return directory(modified: snapshot.stamp?.modified)
  }

  private func directory(subdirectories: Int = 0, modified: Timestamp? = nil) -> NodeStatus {
    NodeStatus(kind: .directory, size: 0, modified: modified ?? started, links: 2 + subdirectories)
  }

  func file(size: Int, modified: Timestamp) -> NodeStatus {
    NodeStatus(kind: .file, size: size, modified: modified, links: 1)
  }

  private func status(of place: KeyPlace) throws(StoreError) -> NodeStatus {
    // A new file may stand where a value was set aside.
    if let pending = overlay.withLock({ $0.pending[.key(place)] }) {
      return file(size: 0, modified: pending.created)
    }
    let entry = settings.suite(place.suite).snapshot?.entries[place.key]
    guard let entry else { throw .notFound }
    var status = file(size: entry.size, modified: entry.modified)
    status.version = entry.version
    return status
  }

  private func statusOfSecret(_ place: Place, _ item: ItemPlace) throws(StoreError) -> NodeStatus {
    if let pending = overlay.withLock({ $0.pending[place] }) {
      return file(size: 0, modified: pending.created)
    }
    if case .otpauth = place {
      if let staged = stagedItem(item)?.otpauth {
        return file(size: staged.content.count, modified: staged.modified)
      }
      guard let further = try storedItem(item)?.otpauth else { throw .notFound }
      return file(size: further.size, modified: further.modified)
    }
    guard let item = try storedItem(item) else { throw .notFound }
    return file(size: item.size, modified: item.modified)
  }

  private func status(of place: ScratchPlace) throws(StoreError) -> NodeStatus {
    guard let file = overlay.withLock({ $0[place] }) else { throw .notFound }
    return file.state.withLock { state in
      NodeStatus(
        kind: state.target == nil ? .file : .symbolicLink,
        size: state.target?.count ?? state.content.count, modified: state.modified, links: 1)
    }
  }

  /// The length of what is stored, whatever open handles hold.
  func committedSize(of node: Node) -> Int {
    let (place, last) = node.state.withLock { ($0.place, $0.isRemoved ? $0.lastStatus : nil) }
    // Of a removed file the place may be another's by now.
    return (try? last ?? status(of: place))?.size ?? 0
  }
}
