public import Model
import Notifier
import Store
import Synchronization

/// A name that a caller may have cached wrongly.
public struct StaleName: Sendable {
  /// The directory that the name is in.
  public let directory: Node
  /// The name, percent-encoded as the kernel has it.
  public let name: String
  /// The node that had the name; nil: none is known.
  public let node: Node?
}

extension FileTree {
  /// Adds a change to the log of events.
  public func record(_ change: Change) {
    // Another document has no path.
    if case .document(_, let name) = change.subject, viewPlaces(ofDocument: name).isEmpty { return }
    events.append(ChangeEvent(change))
  }

  /// The names that a change from outside makes stale, as far as they were looked up.
  public func staleNames(after change: Change) -> [StaleName] {
    places(of: change.subject).flatMap(staleNames)
      + (change.previous.map { places(of: $0).flatMap(staleNames) } ?? [])
  }

  private func staleNames(_ place: Place) -> [StaleName] {
    guard let parent = place.parent else { return [] }
    return nodes.withLock { nodes in
      let node = nodes.known(place)
      // The kernel may have forgotten the directory of a file that is open or watched.
      let directory = nodes.known(parent) ?? (node == nil ? nil : nodes.node(at: parent))
      return directory.map { [StaleName(directory: $0, name: place.name, node: node)] } ?? []
    }
  }

  private func places(of subject: Change.Subject) -> [Place] {
    switch subject {
    case .suite(let name): return [.suite(name)]
    case .key(let suite, let key): return [.key(KeyPlace(suite: suite, key: key))]
    case .item(_, let identity):
      let item = ItemPlace(identity)
      let folder = item.folderPlace.map { [Place.folder($0)] } ?? []
      return [.value(item), .otpauth(item), .item(item)] + folder
    case .otpauth(_, let identity): return [.otpauth(ItemPlace(identity))]
    case .document(_, let name): return viewPlaces(ofDocument: name)
    case .keychain, .everything: return []
    }
  }
}

extension FileTree {
  /// The name of a node that nothing stands behind any more; nil: its directory is unknown.
  public func staleName(of node: Node) -> StaleName? {
    staleNames(node.place).first
  }

  /// Whether a value could be changed now. - Throws: `readOnly`.
  public func checkWritable(_ node: Node) throws(StoreError) {
    let suite: ExactString
    switch node.place {
    case .suite(let name): suite = name
    case .key(let place): suite = place.suite
    case .value, .otpauth: return try requireKeychain().requireWritable()
    case .view(.file(let folder, let name)): return try checkWritable(name, in: folder)
    default: return
    }
    try settings.suite(suite).requireWritable()
  }
}
