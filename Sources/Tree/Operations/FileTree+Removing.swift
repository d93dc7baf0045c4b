public import Model
import Store
import Synchronization

extension FileTree {
  /// unlink(2): deletes a key, a secret (its item stays as a staged one) or scratch, at once.
  ///
  /// - Throws: `notFound`, `isDirectory`, `notPermitted`, `readOnly`.
  public func remove(
    _ name: some Collection<UInt8>, in directory: Node
  ) throws(StoreError) {
    let node = try child(of: directory, named: name)
    let place = node.place
    keepStatus(of: node)
    switch place {
    case .key(let key): try removeKey(key, node)
    case .value(let item): try removeValue(item)
    case .otpauth(let item): try removeOtpauth(item)
    case .view(.file(let folder, let name)): try removeView(name, in: folder)
    case .scratch(let scratch): try removeScratch(scratch)
    case .code: throw .notPermitted(reason: "`otp` is computed; it goes with `otpauth`")
    case .status, .events: throw .notPermitted(reason: "this file is always there")
    case .history(.version), .history(.setting), .history(.viewText):
      throw .notPermitted(reason: "versions are deleted with `keyhole history --purge`")
    default: throw .isDirectory
    }
    nodes.withLock { $0.remove(node, at: place) }
  }

  /// Keeps the status that open files of a node show once its name is gone: fstat(2), fgetxattr(2).
  func keepStatus(of node: Node) {
    // The status remembers itself.
    guard !node.place.isDirectory, (try? status(of: node, for: Caller(thread: 0))) != nil else { return }
    guard let names = try? attributeNames(of: node) else { return }
    var attributes: [String: [UInt8]] = [:]
    for name in names + [AttributeName.name] { attributes[name] = try? attribute(name, of: node) }
    node.state.withLock { $0.lastAttributes = attributes }
  }

  /// Takes what a key's file shows from now on; while the store is changed, before readers see that.
  func keepEntry(ofFileAt place: Place) {
    guard case .key(let key) = place, let node = nodes.withLock({ $0.known(place) }) else { return }
    let entry = settings.suite(key.suite).snapshot?.entries[key.key]
    let isPending = overlay.withLock { $0.pending[place] != nil || $0.setAside[place] != nil }
    guard let entry, !isPending else { return }
    node.state.withLock { state in
      state.lastEntry = entry
      state.lastStatus?.size = entry.size
    }
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

  /// Drops a file whose creation was not committed. Returns whether there was one.
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

  /// `node`: which loses its name before readers see that the key is gone; nil: none.
  private func removeKey(_ place: KeyPlace, _ node: Node? = nil) throws(StoreError) {
    let wasPending = overlay.withLock { overlay in
      let wasPending = overlay.pending.removeValue(forKey: .key(place)) != nil
      overlay.emptyTypes[place] = nil
      // The value that stood aside for it is removed.
      overlay.setAside[.key(place)] = nil
      return wasPending
    }
    let removeNode = { [self] in
      guard let node else { return }
      keepEntry(ofFileAt: .key(place))
      nodes.withLock { $0.remove(node, at: .key(place)) }
    }
    try settings.suite(place.suite).update(beforePublishing: removeNode) { (contents) throws(StoreError) in
      let removed = contents.settings.removeValue(forKey: place.key)
      guard removed != nil || wasPending else { throw .notFound }
    }
  }

  /// The secret goes from the keychain; identity and attributes wait for a new one.
  private func removeValue(_ place: ItemPlace) throws(StoreError) {
    try requireNoOtpauth(place)
    let wasPending = overlay.withLock { overlay in
      overlay.setAside[.value(place)] = nil
      return overlay.pending.removeValue(forKey: .value(place)) != nil
    }
    guard stagedItem(place) == nil, let item = try storedItem(place) else {
      guard wasPending else { throw .notFound }
      return
    }
    try requireKeychain().remove([item.id])
    let twin = try? storedItem(place)?.id
    overlay.withLock { $0.stagedItems[place] = StagedItem(item: item, twin: twin) }
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
    case .otpauth(let item): try removeOtpauth(item)
    case .view(.file(let folder, let name)): try removeView(name, in: folder)
    default: break
    }
  }
}

extension Place {
  var isPermanentDirectory: Bool {
    switch self {
    case .root, .control, .defaults, .keychain, .itemClass: true
    case .history(let place): place.isDirectory
    case .view(let place): place.isDirectory
    case .suite, .folder, .item, .status, .events, .key, .value, .otpauth, .code, .scratch: false
    }
  }
}
