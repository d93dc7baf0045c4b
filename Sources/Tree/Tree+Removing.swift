public import Model
import Store
import Synchronization

extension Tree {
  /// unlink(2): deletes a key, a secret (its item stays as a staged one) or scratch, at once.
  ///
  /// - Throws: `notFound`, `isDirectory`, `notPermitted`, `readOnly`.
  public func remove(
    _ name: some Collection<UInt8>, in directory: Node
  ) throws(StoreError) {
    let node = try child(of: directory, named: name)
    let place = node.place
    keepAttributes(of: node)
    switch place {
    case .key(let key): try removeKey(key)
    case .value(let item): try removeValue(item)
    case .scratch(let scratch): try removeScratch(scratch)
    case .status, .events: throw .notPermitted(reason: "this file is always there")
    default: throw .isDirectory
    }
    nodes.withLock { $0.remove(place) }
  }

  /// Those who have the file open can still read them: fgetxattr(2).
  private func keepAttributes(of node: Node) {
    guard !node.place.isDirectory, let names = try? attributeNames(of: node) else { return }
    var attributes: [String: [UInt8]] = [:]
    for name in names + [AttributeName.name] { attributes[name] = try? attribute(name, of: node) }
    node.state.withLock { $0.lastAttributes = attributes }
  }

  /// rmdir(2): removes an empty suite, a service or server directory without items, or a staged item.
  ///
  /// - Throws: `notFound`, `notEmpty`, `notDirectory`, `notPermitted` for what is always there.
  public func removeDirectory(
    _ name: some Collection<UInt8>, in directory: Node
  ) throws(StoreError) {
    let place = try child(of: directory, named: name).place
    guard place.isDirectory else { throw .notDirectory }
    guard !place.isPermanentDirectory else { throw .notPermitted(reason: "this directory is always there") }
    guard try places(in: place).isEmpty else { throw .notEmpty }
    try removeEmpty(place)
    nodes.withLock { $0.remove(place) }
  }

  /// Drops a file whose creation nobody committed. Returns whether there was one.
  func dropPending(_ node: Node, ifOnlyWriter writer: Handle) -> Bool {
    // Of a removed file the place may be another's by now.
    guard !node.isRemoved else { return false }
    let place = node.place
    let isAlone = node.state.withLock { $0.writers.values.allSatisfy { $0 === writer } }
    guard isAlone else { return false }
    return overlay.withLock { $0.dropPending(place) }
  }

  private func removeEmpty(_ place: Place) throws(StoreError) {
    switch place {
    case .suite(let name): try settings.removeSuite(name)
    case .folder(let folder): _ = overlay.withLock { $0.stagedFolders.remove(folder) }
    case .item(let item): removeStaged(item)
    default: break
    }
  }

  /// The folder of the last item stays, as one that was made by mkdir would.
  private func removeStaged(_ place: ItemPlace) {
    overlay.withLock { overlay in
      overlay.stagedItems[place] = nil
      if let folder = place.folderPlace { overlay.stagedFolders.insert(folder) }
    }
  }

  private func removeKey(_ place: KeyPlace) throws(StoreError) {
    let wasPending = overlay.withLock { overlay in
      let wasPending = overlay.pending.removeValue(forKey: .key(place)) != nil
      overlay.emptyTypes[place] = nil
      // What stood aside for it is gone for good.
      overlay.setAside[.key(place)] = nil
      return wasPending
    }
    try settings.suite(place.suite).update { (contents) throws(StoreError) in
      let removed = contents.settings.removeValue(forKey: place.key)
      guard removed != nil || wasPending else { throw .notFound }
    }
  }

  /// The secret goes from the keychain; identity and attributes wait for a new one.
  private func removeValue(_ place: ItemPlace) throws(StoreError) {
    let wasPending = overlay.withLock { overlay in
      overlay.setAside[.value(place)] = nil
      return overlay.pending.removeValue(forKey: .value(place)) != nil
    }
    guard stagedItem(place) == nil, let item = try storedItem(place) else {
      guard wasPending else { throw .notFound }
      return
    }
    try requireKeychain().remove([item.id])
    overlay.withLock { $0.stagedItems[place] = StagedItem(item: item) }
  }

  /// Deleting what an editor has set aside deletes the value, unless a new one is there.
  private func removeScratch(_ place: ScratchPlace) throws(StoreError) {
    try removeSetAside(as: place)
    overlay.withLock { $0[place] = nil }
  }

  /// Deletes the values that stand aside under a scratch name whose file goes: one, or another that a failed
  /// save left there.
  func removeSetAside(as scratch: ScratchPlace, except kept: Place? = nil) throws(StoreError) {
    let aside = overlay.withLock { overlay in overlay.setAside.filter { $0.value == scratch }.map(\.key) }
    for place in aside where place != kept { try removeSetAside(place) }
  }

  private func removeSetAside(_ place: Place) throws(StoreError) {
    // A new file in its place takes over: it is the same key, and its commit replaces the value.
    guard overlay.withLock({ $0.pending[place] == nil }) else { return }
    switch place {
    case .key(let key): try removeKey(key)
    case .value(let item): try removeValue(item)
    default: break
    }
  }
}

extension Place {
  var isPermanentDirectory: Bool {
    switch self {
    case .root, .control, .defaults, .keychain, .itemClass: true
    case .suite, .folder, .item, .status, .events, .key, .value, .scratch: false
    }
  }
}
