public import Model
import Store
import Synchronization

extension FileTree {
  /// The file or directory called `name` in `directory`; `name` is as it stands in the path.
  ///
  /// - Throws: `notFound`, also for what is no canonical encoding; `notUnicode`, `nameTooLong`,
  ///   `notDirectory`; `locked`, `unreachable`; `damaged`, `tooLarge`, `accessDenied` for a suite that can't be read.
  public func child(of directory: Node, named name: some Collection<UInt8>) throws(StoreError) -> Node {
    node(at: try place(of: name, in: directory.place))
  }

  private func place(
    of name: some Collection<UInt8>, in directory: Place
  ) throws(StoreError) -> Place {
    switch directory {
    case .root: try fixed(name, [.defaults, .control] + (keychain == nil ? [] : [.keychain]) + viewFolders)
    case .control: try fixed(name, [.status, .events, .history(.top)])
    case .history(let place): try self.place(of: name, in: place)
    case .keychain: try fixed(name, ItemClass.allCases.map(Place.itemClass))
    case .defaults: try suitePlace(name)
    case .suite(let suite): try filePlace(name, inSuite: suite)
    case .itemClass(let itemClass): try placeInClass(name, itemClass)
    case .folder(let folder):
      try itemPlace(name, in: folder)
    case .item(let item): try filePlace(name, inItem: item)
    case .view(.folder(let folder)): try viewPlace(of: name, in: folder)
    case .view(.file): throw .notDirectory
    case .status, .events, .key, .value, .otpauth, .code, .scratch: throw .notDirectory
    }
  }

  private func fixed(
    _ name: some Collection<UInt8>, _ places: [Place]
  ) throws(StoreError) -> Place {
    if let place = places.first(where: { $0.name.utf8.elementsEqual(name) }) { return place }
    _ = try PathName(lookingUp: name)
    throw .notFound
  }

  private func suitePlace(_ name: some Collection<UInt8>) throws(StoreError) -> Place {
    let name = try PathName(lookingUp: name)
    let plain = try plain(name) { () throws(StoreError) in try settings.suiteNames() }
    _ = try settings.presentSuite(plain)
    return .suite(plain)
  }

  private func filePlace(
    _ name: some Collection<UInt8>, inSuite suite: ExactString
  ) throws(StoreError) -> Place {
    if let scratch = existingScratch(name, in: .suite(suite)) { return .scratch(scratch) }
    let name = try PathName(lookingUp: name)
    let snapshot = try settings.suite(suite).fetch()
    let plain = try plain(name) { snapshot.map { Array($0.entries.keys) } ?? [] }
    let place = Place.key(KeyPlace(suite: suite, key: plain))
    let (isPending, isAside) = overlay.withLock { ($0.pending[place] != nil, $0.setAside[place] != nil) }
    guard isPending || (snapshot?.entries[plain] != nil && !isAside) else { throw .notFound }
    return place
  }

  private func placeInClass(
    _ name: some Collection<UInt8>, _ itemClass: ItemClass
  ) throws(StoreError) -> Place {
    let name = try PathName(lookingUp: name)
    guard itemClass != .other else {
      return try existing(.item(ItemPlace(itemClass: itemClass, folder: nil, name: name)))
    }
    return try existing(.folder(FolderPlace(itemClass: itemClass, name: name)))
  }

  private func itemPlace(
    _ name: some Collection<UInt8>, in folder: FolderPlace
  ) throws(StoreError) -> Place {
    let level = ItemFolderName.leafLevel(of: folder.itemClass)
    return try existing(.item(ItemPlace(folder: folder, name: PathName(lookingUp: name, level: level))))
  }

  private func filePlace(
    _ name: some Collection<UInt8>, inItem item: ItemPlace
  ) throws(StoreError) -> Place {
    if let secret = Place(secretOf: item, named: name) { return try existing(secret) }
    if name.elementsEqual(ItemSecrets.codeName.utf8) { return try existing(.code(item)) }
    guard let scratch = existingScratch(name, in: .item(item)) else {
      _ = try PathName(lookingUp: name)
      throw .notFound
    }
    return .scratch(scratch)
  }

  private func existing(_ place: Place) throws(StoreError) -> Place {
    guard try exists(place) else { throw .notFound }
    return place
  }

  func existingScratch(
    _ name: some Collection<UInt8>, in directory: ScratchPlace.Directory
  ) -> ScratchPlace? {
    guard overlay.withLock({ $0.scratch[directory] != nil }) else { return nil }
    guard let name = ExactString(utf8: name) else { return nil }
    let place = ScratchPlace(directory: directory, name: name)
    return overlay.withLock { $0[place] != nil } ? place : nil
  }

  /// The name that is shown as `name`: only those that are there tell whose a cut one is.
  private func plain(
    _ name: PathName, among names: () throws(StoreError) -> [ExactString]
  ) throws(StoreError) -> ExactString {
    if let plain = name.plain { return plain }
    guard let found = try names().first(where: { PathName($0) == name }) else { throw .notFound }
    return found
  }

  /// Whether something stands at `place` now.
  func exists(_ place: Place) throws(StoreError) -> Bool {
    switch place {
    case .root, .control, .status, .events, .defaults: true
    case .keychain, .itemClass: keychain != nil
    case .suite(let name): try settings.existingSuite(name) != nil
    case .history(let place): try existsInHistory(place)
    case .key(let key): try keyExists(key)
    case .folder(let folder): try folderExists(folder)
    case .item(let item): try itemExists(item)
    case .value(let item), .otpauth(let item): try secretExists(place, item)
    case .code(let item): try codeExists(item)
    case .view(let view): try viewExists(view)
    case .scratch(let scratch): overlay.withLock { $0[scratch] != nil }
    }
  }

  private func keyExists(_ place: KeyPlace) throws(StoreError) -> Bool {
    let (isPending, isAside) = overlay.withLock {
      ($0.pending[.key(place)] != nil, $0.setAside[.key(place)] != nil)
    }
    if isPending || isAside { return isPending }
    return try settings.suite(place.suite).fetch()?.entries[place.key] != nil
  }

  func folderExists(_ place: FolderPlace) throws(StoreError) -> Bool {
    if overlay.withLock({ $0.stagedFolders(of: place.itemClass).contains(place) }) { return true }
    let keychain = try requireKeychain()
    guard let plain = place.name.plain else { return try plainFolder(place) != nil }
    return try keychain.hasFolder(plain, of: place.itemClass)
  }

  private func itemExists(_ place: ItemPlace) throws(StoreError) -> Bool {
    if stagedItem(place) != nil { return true }
    return try storedItem(place) != nil
  }

  /// A URI that waits for its item's secret is none yet.
  private func codeExists(_ item: ItemPlace) throws(StoreError) -> Bool {
    guard stagedItem(item) == nil else { return false }
    return try storedItem(item)?.otpauth != nil
  }

  private func secretExists(_ place: Place, _ item: ItemPlace) throws(StoreError) -> Bool {
    let (isPending, isAside) = overlay.withLock { ($0.pending[place] != nil, $0.setAside[place] != nil) }
    if isPending || isAside { return isPending }
    let isMain = place == .value(item)
    if let staged = stagedItem(item) { return !isMain && staged.otpauth != nil }
    guard let stored = try storedItem(item) else { return false }
    return isMain || stored.otpauth != nil
  }
}
