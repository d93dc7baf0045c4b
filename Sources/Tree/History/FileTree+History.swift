public import Model
import Store
import Synchronization

// `.keyhole/history`. To look at it takes no secret; a version is opened as its item is.
extension FileTree {
  /// The identity of the item that is at a path from the top, or was: of the item's directory or a file of it.
  ///
  /// - Throws: `notFound` for a path of another kind, and for a shortened name of which nothing is kept.
  public func identityOfItem(at path: [String]) throws(StoreError) -> ItemIdentity {
    guard let (place, below) = try itemPlace(leading: path), below.count <= 1,
      below.isEmpty || Place(secretOf: place, named: below[below.startIndex].utf8) != nil
    else { throw .notFound }
    return try identity(of: place)
  }

  private func identity(of place: ItemPlace) throws(StoreError) -> ItemIdentity {
    if let identity = place.identity { return identity }
    if let item = try storedItem(place) { return item.identity }
    guard let identity = try identitiesWithVersions().first(where: { ItemPlace($0) == place }) else {
      throw .notFound
    }
    return identity
  }

  /// The versions of an item, the oldest first; empty where there are none, or the keychain keeps none.
  func versions(at place: ItemPlace) throws(StoreError) -> [ItemVersion] {
    guard let keychain, keychain.engine.history != nil else { return [] }
    do throws(StoreError) {
      return try keychain.versions(of: identity(of: place))
    } catch {
      guard error == .notFound else { throw error }
      return []
    }
  }

  func version(_ number: UInt64, at place: ItemPlace) throws(StoreError) -> ItemVersion {
    guard let version = try versions(at: place).first(where: { $0.number == number }) else { throw .notFound }
    return version
  }

  func identitiesWithVersions() throws(StoreError) -> [ItemIdentity] {
    guard let keychain, keychain.engine.history != nil else { return [] }
    let change = keychain.changeNumber
    return try history.withLock { known throws(StoreError) in
      if let last = known, last.change == change, last.until > .now { return last.identities }
      let identities = try keychain.identitiesWithVersions()
      known = KnownHistory(identities: identities, change: change, until: .now + .seconds(1))
      return identities
    }
  }

  private func items(in folder: FolderPlace?, of itemClass: ItemClass) throws(StoreError) -> Set<ItemPlace> {
    let identities = try identitiesWithVersions().lazy.filter { $0.itemClass == itemClass && !$0.isDocument }
    let places = identities.map { ItemPlace($0) }
    return Set(folder.map { folder in places.filter { $0.folderPlace == folder } } ?? Array(places))
  }

  func places(in history: HistoryPlace) throws(StoreError) -> [Place] {
    switch history {
    case .top:
      let views: [Place] = viewFolders.isEmpty ? [] : [.history(.views)]
      return [.history(.defaults)] + (keychain == nil ? [] : [.history(.keychain)]) + views
    case .defaults, .suite, .key: return try settingPlaces(in: history)
    case .keychain: return ItemClass.allCases.map { .history(.itemClass($0)) }
    case .itemClass(.other): return try items(in: nil, of: .other).map { .history(.item($0)) }
    case .itemClass(let itemClass):
      return Set(try items(in: nil, of: itemClass).compactMap(\.folderPlace)).map { .history(.folder($0)) }
    case .folder(let folder):
      return try items(in: folder, of: folder.itemClass).map { .history(.item($0)) }
    case .item(let item): return try versions(at: item).map { .history(.version(item, $0.number)) }
    case .views, .view: return try viewPlaces(in: history)
    case .version, .setting, .viewText: throw .notDirectory
    }
  }

  /// The place of a name in a directory of `.keyhole/history`. - Throws: `notFound`.
  func place(of name: some Collection<UInt8>, in directory: HistoryPlace) throws(StoreError) -> Place {
    let place: HistoryPlace
    switch directory {
    case .top, .keychain, .defaults, .suite, .key, .views, .view:
      // Of suites there are few, and what is kept of one is read as a whole.
      guard let found = try places(in: directory).first(where: { $0.name.utf8.elementsEqual(name) }) else {
        throw .notFound
      }
      return found
    case .itemClass(.other):
      place = .item(ItemPlace(itemClass: .other, folder: nil, name: try PathName(lookingUp: name)))
    case .itemClass(let itemClass):
      place = .folder(FolderPlace(itemClass: itemClass, name: try PathName(lookingUp: name)))
    case .folder(let folder):
      let level = ItemFolderName.leafLevel(of: folder.itemClass)
      place = .item(ItemPlace(folder: folder, name: try PathName(lookingUp: name, level: level)))
    case .item(let item):
      let text = ExactString(utf8: name)?.string ?? ""
      guard let number = UInt64(text), String(number) == text else { throw .notFound }
      place = .version(item, number)
    case .version, .setting, .viewText: throw .notDirectory
    }
    guard try existsInHistory(place) else { throw .notFound }
    return .history(place)
  }

  func existsInHistory(_ history: HistoryPlace) throws(StoreError) -> Bool {
    switch history {
    case .top, .defaults: true
    case .suite, .key, .setting: try settingExists(history)
    case .keychain, .itemClass: keychain != nil
    case .views: !viewFolders.isEmpty
    case .view(let name): try !versions(ofView: name).isEmpty
    case .viewText(let name, let number): try versions(ofView: name).contains { $0.number == number }
    case .folder(let folder): try !items(in: folder, of: folder.itemClass).isEmpty
    case .item(let item): try !versions(at: item).isEmpty
    case .version(let item, let number): try versions(at: item).contains { $0.number == number }
    }
  }

  func status(of history: HistoryPlace) throws(StoreError) -> NodeStatus {
    switch history {
    case .item(let item):
      guard let last = try versions(at: item).last else { throw .notFound }
      return NodeStatus(kind: .directory, size: 0, modified: last.replaced, links: 2)
    case .setting(let key, let number):
      let version = try settingVersion(number, of: key)
      let size = try settings.codec.content(of: version.value).count
      return NodeStatus(kind: .file, size: size, modified: version.replaced, links: 1)
    case .viewText(let name, let number): return try status(ofVersion: number, ofView: name)
    case .version(let item, let number):
      let version = try version(number, at: item)
      return NodeStatus(kind: .file, size: version.item.size, modified: version.replaced, links: 1)
    default:
      guard try existsInHistory(history) else { throw .notFound }
      return NodeStatus(kind: .directory, size: 0, modified: started, links: 2)
    }
  }

  /// The question before a version is opened.
  func permission(
    toOpen place: ItemPlace, version number: UInt64, _ path: String, _ caller: Caller
  ) throws(StoreError) -> Permission {
    let version = try version(number, at: place)
    return try requireKeychain().permission(for: version.item, to: .read, path: path, by: caller)
  }

  func openVersion(
    _ number: UInt64, at place: ItemPlace, _ node: Node, _ mode: OpenMode, _ permit: Permit?
  ) throws(StoreError) -> Handle {
    guard !mode.contains(.write) else { throw .accessDenied(reason: "a version can only be read") }
    let (keychain, item) = (try requireKeychain(), try version(number, at: place).item)
    var state = Handle.State()
    state.draft = .untouched(.secret(try keychain.secret(of: item, permit)))
    let handle = Handle(node, in: self, mode: mode, state: state)
    // A lock that came meanwhile may have missed the handle.
    guard keychain.engine.locking.isAccessible(item) else {
      handle.seal()
      throw .locked
    }
    do throws(StoreError) { try permit?.requireUnchangedCaller() } catch {
      handle.seal()
      throw error
    }
    return handle
  }

  /// Whether a version that is open may stay so after a lock.
  func isUnlocked(_ history: HistoryPlace) -> Bool {
    if case .viewText(let name, let number) = history {
      return (try? text(ofVersion: number, ofView: name)) != nil
    }
    guard case .version(let item, let number) = history else { return true }
    guard let keychain, let version = try? version(number, at: item) else {
      return keychain?.engine.locking.lockState == .open
    }
    return keychain.engine.locking.isAccessible(version.item)
  }

  /// The item as it was; of an item's directory, as it was last.
  func itemOfVersion(_ history: HistoryPlace) throws(StoreError) -> Item? {
    guard case .version(let item, let number) = history else { return nil }
    return try version(number, at: item).item
  }
}

/// The identities with versions as they were found a moment ago, after the last change: a walk through the folders asks for
/// each name.
struct KnownHistory {
  var identities: [ItemIdentity]
  /// The last change before.
  var change: UInt64
  var until: ContinuousClock.Instant
}
