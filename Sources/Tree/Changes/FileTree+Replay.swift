import Dispatch
public import Model
public import Notifier
import Platform
import Store
import Synchronization
import Views

/// The place of a replay in the tree, whether or not a file stands there.
public struct ReplayPlace: ReplayTarget {
  let place: Place

  /// From the top of the tree, without a leading slash.
  public var path: String { place.path }

  /// Whether it is the place of a directory.
  public var isDirectory: Bool { place.isDirectory }
}

/// The replay of a change in the tree.
public typealias TreeReplay = Replay<ReplayPlace>

extension TreeReplay {
  init(_ kind: ReplayKind, _ place: Place) {
    self.init(kind, ReplayPlace(place: place))
  }

  fileprivate var place: Place { target.place }
}

extension FileTree {
  /// The replays of a change. To be called for every change in turn, also for those of this process, which need none but
  /// decide whether a later change is the first or last item of a folder.
  public func replays(of change: Change) -> [TreeReplay] {
    switch change.subject {
    case .suite(let name): replays(change, at: .suite(name))
    case .key(let suite, let key): replays(change, at: .key(KeyPlace(suite: suite, key: key)))
    case .item(_, let identity): replays(change, of: ItemPlace(identity))
    case .otpauth(_, let identity): replays(change, at: .otpauth(ItemPlace(identity)))
    case .document(_, let name): replays(change, ofDocument: name)
    case .keychain, .everything: noteFolders()
    }
  }

  /// Whether the store still is as a replay shows it: it may have changed again since.
  public func isTrue(_ replay: TreeReplay) -> Bool {
    let exists = (try? exists(replay.place)) ?? false
    return replay.kind == .deletion ? !exists : exists
  }

  /// The directory of a replay's file; nil: it was never looked up.
  public func directory(of replay: TreeReplay) -> Node? {
    replay.place.parent.flatMap { parent in nodes.withLock { $0.known(parent) } }
  }

  /// The node of a replay's file; nil: it was never looked up, or was forgotten.
  public func knownNode(of replay: TreeReplay) -> Node? { nodes.withLock { $0.known(replay.place) } }

  /// The node of a replay's file, also of one that is gone.
  public func node(of replay: TreeReplay) -> Node { node(at: replay.place) }

  /// The file or directory of that name on the way to a replay's file, whether or not it is still there.
  public func node(named name: some Collection<UInt8>, in directory: Node, onTheWayTo replay: TreeReplay)
    -> Node?
  {
    let above = sequence(first: replay.place, next: \.parent)
    let place = above.first { $0.parent == directory.place && $0.name.utf8.elementsEqual(name) }
    return place.map(node(at:))
  }

  /// Takes the name from the node of a file that is gone: what gets the name next is another file.
  public func giveUpName(of replay: TreeReplay) {
    guard isTrue(replay) else { return }
    nodes.withLock { $0.remove(replay.place) }
  }

  private func replays(_ change: Change, at place: Place) -> [TreeReplay] {
    guard change.origin != .local else { return [] }
    return ReplayKind(change.kind).map { [TreeReplay($0, place)] } ?? []
  }

  private func replays(_ change: Change, of item: ItemPlace) -> [TreeReplay] {
    var old: ItemPlace?
    if case .item(_, let identity)? = change.previous { old = ItemPlace(identity) }
    let gone = change.kind == .deleted ? item : old
    let isNew = change.kind == .created || change.kind == .moved
    // Also of a change of this process, which the kernel itself reports to watchers.
    let (leaving, entering) = (gone.map(replayOfLeaving) ?? [], isNew ? replayOfEntering(item) : [])
    guard change.origin != .local else { return [] }
    var replays: [TreeReplay] = []
    // Of an item that comes or goes, the store reports the URI by itself; of one that moves, its file moves along.
    let movesOtpauth = change.kind == .moved && ((try? exists(.otpauth(item))) ?? false)
    if let gone, movesOtpauth { replays.append(TreeReplay(.deletion, .otpauth(gone))) }
    if let gone {
      replays += [TreeReplay(.deletion, .value(gone)), TreeReplay(.deletion, .item(gone))]
      replays += leaving
    }
    if isNew {
      replays += entering
      replays += [TreeReplay(.creation, .item(item)), TreeReplay(.creation, .value(item))]
    }
    if movesOtpauth { replays.append(TreeReplay(.creation, .otpauth(item))) }
    if change.kind == .modified { replays.append(TreeReplay(.modification, .value(item))) }
    if change.kind == .attributes {
      replays += [
        TreeReplay(.attributes, .item(item)), TreeReplay(.attributes, .value(item)),
      ]
    }
    return replays
  }
}

// The directory of a service or server comes with its first item, and goes with its last one.
extension FileTree {
  /// Takes the present state of the stores as known to all watchers: what differs later is a change. Of a keychain that
  /// may block, the state when it answers. Of many items the folders are known when all were read, which goes on afterwards.
  public func beginFollowing() {
    views?.measureLargeViewsLater(sealing: !options.isReadOnly)
    if keychain?.mayBlock == true {
      Background.run { [self] in followKeychain() }
      settings.beginFollowing()
    } else {
      // Side by side: each takes as long as all the rest of a mount's start.
      let isReady = DispatchGroup()
      isReady.enter()
      Background.run { [self] in
        try? keychain?.beginLoading()
        let isLater = keychain?.isLoading == true
        if isLater { isReady.leave() }
        followKeychain()
        if !isLater { isReady.leave() }
      }
      settings.beginFollowing()
      isReady.wait()
    }
  }

  private func followKeychain() {
    try? keychain?.load()
    _ = noteFolders()
    Background.run { [self] in beginFollowingViews() }
  }

  /// The items of a locked keychain are not known before it is unlocked.
  private func noteFolders() -> [TreeReplay] {
    // The thread that follows the changes does not wait for the reading.
    guard keychain?.isLoading != true else {
      Background.run { [self] in followKeychain() }
      return []
    }
    let folders = storedFolders()
    shownFolders.withLock { $0 = folders }
    return []
  }

  private func storedFolders() -> Set<FolderPlace> {
    let classes: [ItemClass] = [.generic, .internet]
    let folders = try? keychain?.read { index in
      classes.flatMap { itemClass in index.folders(of: itemClass).map { (itemClass, $0) } }
    }
    return Set((folders ?? []).map { FolderPlace(itemClass: $0, name: PathName($1)) })
  }

  private func replayOfEntering(_ item: ItemPlace) -> [TreeReplay] {
    guard let folder = item.folderPlace else { return [] }
    let isNew = shownFolders.withLock { $0.insert(folder).inserted }
    return isNew && !isStaged(folder) ? [TreeReplay(.creation, .folder(folder))] : []
  }

  private func replayOfLeaving(_ item: ItemPlace) -> [TreeReplay] {
    guard let folder = item.folderPlace, (try? storedItems(in: .folder(folder)).isEmpty) ?? true else {
      return []
    }
    let wasShown = shownFolders.withLock { $0.remove(folder) != nil }
    return wasShown && !isStaged(folder) ? [TreeReplay(.deletion, .folder(folder))] : []
  }

  private func isStaged(_ folder: FolderPlace) -> Bool {
    overlay.withLock { $0.stagedFolders(of: folder.itemClass).contains(folder) }
  }
}

extension ReplayKind {
  init?(_ kind: Change.Kind) {
    switch kind {
    case .created: self = .creation
    case .deleted: self = .deletion
    case .modified: self = .modification
    case .attributes: self = .attributes
    default: return nil
    }
  }
}
