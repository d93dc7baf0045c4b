import Dispatch
public import Model
import Platform
import Store
import Synchronization

/// Something that happened elsewhere and that watchers of the mount shall see happen, too.
public struct Replay: Hashable, Sendable {
  /// In the order in which those of one file are due.
  public enum Kind: Int, Comparable, Sendable {
    case deletion
    case creation
    case modification
    case attributes

    /// The order in which replays of one file are made.
    public static func < (left: Kind, right: Kind) -> Bool { left.rawValue < right.rawValue }
  }

  /// The kind of the change of the file.
  public let kind: Kind
  let place: Place

  /// From the top of the tree, without a leading slash.
  public var path: String { place.path }

  /// Whether it happened to a directory.
  public var isDirectory: Bool { place.isDirectory }
}

/// Replays that are due, in the order in which it happened. What happens to one file while it waits becomes one:
/// so there are never more than a few for each file.
public struct ReplayQueue: Sendable {
  private struct Waiting {
    var kinds: Set<Replay.Kind> = []
    /// When it came or went last, or was changed first.
    var number: UInt64
  }

  private var due: [Place: Waiting] = [:]
  private var count: UInt64 = 0
  /// The present batch, the next one last.
  private var batch: [Replay] = []

  /// An empty queue.
  public init() {}

  /// Adds a replay; with those of the same file that wait it becomes one, or none where they cancel out.
  public mutating func add(_ replay: Replay) {
    count += 1
    var waiting = due[replay.place] ?? Waiting(number: count)
    // A directory comes before what is in it, and goes after it.
    if replay.kind <= .creation { waiting.number = count }
    waiting.kinds = Self.kinds(waiting.kinds, and: replay)
    due[replay.place] = waiting.kinds.isEmpty ? nil : waiting
  }

  private static func kinds(_ kinds: Set<Replay.Kind>, and replay: Replay) -> Set<Replay.Kind> {
    switch replay.kind {
    // A creation that was not seen needs no deletion.
    case .deletion: kinds.contains(.creation) ? [] : [.deletion]
    // For watchers it was there all the time.
    case .creation where kinds.contains(.deletion): replay.isDirectory ? [] : [.modification]
    case .creation: kinds.union([.creation])
    case .modification, .attributes: kinds.contains(.creation) ? kinds : kinds.union([replay.kind])
    }
  }

  /// Takes the next replay; nil: none waits.
  public mutating func next() -> Replay? {
    if batch.isEmpty {
      batch = due.sorted { $0.value.number > $1.value.number }.flatMap { place, waiting in
        waiting.kinds.sorted(by: >).map { Replay(kind: $0, place: place) }
      }
      due = [:]
    }
    return batch.popLast()
  }
}

extension FileTree {
  /// The replays of a change. To be called for every change in turn, also for those made here.
  public func replays(of change: Change) -> [Replay] {
    switch change.subject {
    case .suite(let name): replays(change, at: .suite(name))
    case .key(let suite, let key): replays(change, at: .key(KeyPlace(suite: suite, key: key)))
    case .item(_, let identity): replays(change, of: ItemPlace(identity))
    case .otpauth(_, let identity): replays(change, at: .otpauth(ItemPlace(identity)))
    case .keychain, .everything: noteFolders()
    }
  }

  /// Whether an replay still tells the truth: it may have happened again since.
  public func isTrue(_ replay: Replay) -> Bool {
    let exists = (try? exists(replay.place)) ?? false
    return replay.kind == .deletion ? !exists : exists
  }

  /// The directory in which it could be seen; nil: it was never looked up.
  public func directory(of replay: Replay) -> Node? {
    replay.place.parent.flatMap { parent in nodes.withLock { $0.known(parent) } }
  }

  /// The node of an echo's file, also of one that is gone.
  public func node(of replay: Replay) -> Node { node(at: replay.place) }

  /// The file or directory of that name on the way to an echo's file, whether or not it is still there.
  public func node(named name: some Collection<UInt8>, in directory: Node, onTheWayTo replay: Replay) -> Node?
  {
    let above = sequence(first: replay.place, next: \.parent)
    let place = above.first { $0.parent == directory.place && $0.name.utf8.elementsEqual(name) }
    return place.map(node(at:))
  }

  /// The name of what is gone is given up: what gets it next is another file.
  public func giveUpName(of replay: Replay) {
    guard isTrue(replay) else { return }
    nodes.withLock { $0.remove(replay.place) }
  }

  private func replays(_ change: Change, at place: Place) -> [Replay] {
    guard change.origin == .external else { return [] }
    return Replay.Kind(change.kind).map { [Replay(kind: $0, place: place)] } ?? []
  }

  private func replays(_ change: Change, of item: ItemPlace) -> [Replay] {
    var old: ItemPlace?
    if case .item(_, let identity)? = change.previous { old = ItemPlace(identity) }
    let gone = change.kind == .deleted ? item : old
    let isNew = change.kind == .created || change.kind == .moved
    // Noted also of what is done here, where the kernel itself tells the watchers.
    let (leaving, entering) = (gone.map(echoOfLeaving) ?? [], isNew ? echoOfEntering(item) : [])
    guard change.origin == .external else { return [] }
    var replays: [Replay] = []
    // Of an item that comes or goes, the store tells of the URI; of one that moves, its file moves along.
    let movesOtpauth = change.kind == .moved && ((try? exists(.otpauth(item))) ?? false)
    if let gone, movesOtpauth { replays.append(Replay(kind: .deletion, place: .otpauth(gone))) }
    if let gone {
      replays += [Replay(kind: .deletion, place: .value(gone)), Replay(kind: .deletion, place: .item(gone))]
      replays += leaving
    }
    if isNew {
      replays += entering
      replays += [Replay(kind: .creation, place: .item(item)), Replay(kind: .creation, place: .value(item))]
    }
    if movesOtpauth { replays.append(Replay(kind: .creation, place: .otpauth(item))) }
    if change.kind == .modified { replays.append(Replay(kind: .modification, place: .value(item))) }
    if change.kind == .attributes {
      replays += [
        Replay(kind: .attributes, place: .item(item)), Replay(kind: .attributes, place: .value(item)),
      ]
    }
    return replays
  }
}

// The directory of a service or server comes with its first item, and goes with its last one.
extension FileTree {
  /// Takes the present state as known to all watchers; of a keychain that may block, the state when it
  /// answers.
  public func beginFollowing() {
    if keychain?.mayBlock == true {
      Background.run { [self] in followKeychain() }
      settings.beginFollowing()
    } else {
      // Side by side: each takes as long as everything else of a mount.
      let keychain = DispatchGroup()
      keychain.enter()
      Background.run { [self] in
        followKeychain()
        keychain.leave()
      }
      settings.beginFollowing()
      keychain.wait()
    }
  }

  private func followKeychain() {
    try? keychain?.load()
    _ = noteFolders()
  }

  /// The items of a locked keychain are not known before it is unlocked.
  private func noteFolders() -> [Replay] {
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

  private func echoOfEntering(_ item: ItemPlace) -> [Replay] {
    guard let folder = item.folderPlace else { return [] }
    let isNew = shownFolders.withLock { $0.insert(folder).inserted }
    return isNew && !isStaged(folder) ? [Replay(kind: .creation, place: .folder(folder))] : []
  }

  private func echoOfLeaving(_ item: ItemPlace) -> [Replay] {
    guard let folder = item.folderPlace, (try? storedItems(in: .folder(folder)).isEmpty) ?? true else {
      return []
    }
    let wasShown = shownFolders.withLock { $0.remove(folder) != nil }
    return wasShown && !isStaged(folder) ? [Replay(kind: .deletion, place: .folder(folder))] : []
  }

  private func isStaged(_ folder: FolderPlace) -> Bool {
    overlay.withLock { $0.stagedFolders(of: folder.itemClass).contains(folder) }
  }
}

extension Replay.Kind {
  fileprivate init?(_ kind: Change.Kind) {
    switch kind {
    case .created: self = .creation
    case .deleted: self = .deletion
    case .modified: self = .modification
    case .attributes: self = .attributes
    default: return nil
    }
  }
}
