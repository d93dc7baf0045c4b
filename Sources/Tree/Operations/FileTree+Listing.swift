public import Model
import Store
import Synchronization

/// One line of a directory's listing.
public struct DirectoryEntry: Sendable {
  /// As it stands in the path.
  public let name: String
  let place: Place

  /// Whether the entry is a directory.
  public var isDirectory: Bool { place.isDirectory }

  init(_ place: Place) {
    name = place.name
    self.place = place
  }
}

extension FileTree {
  /// The entries of a directory, in no particular order; `.keyhole` is found by name only.
  ///
  /// - Throws: `notDirectory`, `locked`, `unreachable`.
  public func list(_ directory: Node) throws(StoreError) -> [DirectoryEntry] {
    try places(in: directory.place).map(DirectoryEntry.init)
  }

  /// The number of the file of an entry that `list` gave: `st_ino`.
  public func number(of entry: DirectoryEntry) -> UInt64 {
    nodes.withLock { $0.number(at: entry.place) }
  }

  /// The node of an entry that `list` gave.
  public func node(of entry: DirectoryEntry) -> Node {
    node(at: entry.place)
  }

  func places(in directory: Place) throws(StoreError) -> [Place] {
    switch directory {
    case .root: [.defaults] + (keychain == nil ? [] : [.keychain]) + viewFolders
    case .control: [.status, .events, .history(.top)]
    case .history(let place): try places(in: place)
    case .defaults: try settings.suiteNames().map(Place.suite)
    case .suite(let name): try files(ofSuite: name)
    case .keychain: ItemClass.allCases.map(Place.itemClass)
    case .itemClass(.other): try items(in: directory)
    case .itemClass(let itemClass): try folders(of: itemClass)
    case .folder(let folder): try places(inFolder: folder)
    case .item(let item): try files(ofItem: item)
    case .view(.folder(let folder)): try files(in: folder)
    case .view(.file): throw .notDirectory
    case .status, .events, .key, .value, .otpauth, .code, .scratch: throw .notDirectory
    }
  }

  private func files(ofSuite suite: ExactString) throws(StoreError) -> [Place] {
    guard let snapshot = try settings.suite(suite).fetch() else { throw .notFound }
    var keys = snapshot.entries.keys.map { Place.key(KeyPlace(suite: suite, key: $0)) }
    overlay.withLock { overlay in
      let scratch = overlay.scratchPlaces(in: .suite(suite))
      // Another process may have stored a key that has a scratch file's name: the file hides it.
      let hidden = Set(scratch.compactMap { Place.key(named: $0.name, in: suite) })
      if !overlay.setAside.isEmpty || !hidden.isEmpty {
        keys.removeAll { overlay.setAside[$0] != nil || hidden.contains($0) }
      }
      keys += overlay.pending.keys.filter { $0.parent == .suite(suite) && !keys.contains($0) }
      keys += scratch
    }
    return keys
  }

  private func folders(of itemClass: ItemClass) throws(StoreError) -> [Place] {
    let stored = try requireKeychain().read { $0.folders(of: itemClass) }
    let places = stored.map { FolderPlace(itemClass: itemClass, name: PathName($0)) }
    let staged = overlay.withLock { $0.stagedFolders(of: itemClass) }
    return staged.union(places).map(Place.folder)
  }

  /// How many directories stand in the one of a class or a folder. It is asked for with each lookup.
  func count(in directory: Place) throws(StoreError) -> Int {
    let hasStaged = overlay.withLock { !$0.stagedItems.isEmpty || !$0.stagedFolders.isEmpty }
    switch directory {
    case .folder(let folder) where !hasStaged:
      guard let plain = try plainFolder(folder) else { return 0 }
      return try requireKeychain().read { $0.countOfItems(in: plain, of: folder.itemClass) }
    case .itemClass(let itemClass) where !hasStaged && itemClass != .other:
      return try requireKeychain().read { $0.countOfFolders(of: itemClass) }
    default:
      return try places(in: directory).count
    }
  }

  private func places(inFolder folder: FolderPlace) throws(StoreError) -> [Place] {
    let places = try items(in: .folder(folder))
    // The kernel knows the name of one that is gone for a second.
    if places.isEmpty, try !folderExists(folder) { throw .notFound }
    return places
  }

  private func items(in directory: Place) throws(StoreError) -> [Place] {
    let staged = overlay.withLock { $0.stagedItems(in: directory) }
    return Set(staged).union(try storedItems(in: directory).map(\.place)).map(Place.item)
  }

  private func files(ofItem item: ItemPlace) throws(StoreError) -> [Place] {
    guard try exists(.item(item)) else { throw .notFound }
    // The one that has to be removed first comes first: `rm -r` removes in this order.
    var secrets = try exists(.otpauth(item)) ? [Place.otpauth(item)] : []
    if try exists(.value(item)) { secrets.append(.value(item)) }
    return secrets + overlay.withLock { $0.scratchPlaces(in: .item(item)) }
  }
}

extension Place {
  /// The key that is shown as `name`; nil: none can be, or only a cut one.
  fileprivate static func key(named name: String, in suite: ExactString) -> Place? {
    guard let plain = try? PathName(lookingUp: name.utf8).plain else { return nil }
    return .key(KeyPlace(suite: suite, key: plain))
  }
}

extension Overlay {
  func scratchPlaces(in directory: ScratchPlace.Directory) -> [Place] {
    (scratch[directory] ?? [:]).keys.map { .scratch(ScratchPlace(directory: directory, name: $0)) }
  }
}
