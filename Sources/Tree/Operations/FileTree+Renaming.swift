public import Model
public import Store
import Synchronization
import Views

extension FileTree {
  /// rename(2) and, with `replacing` false, renameat2(2)'s RENAME_NOREPLACE.
  ///
  /// A move never loses the value: at any moment the old name holds it, or the new one, or both.
  /// - Throws: `notFound`, `exists`, `notEmpty`, `isDirectory`, `notDirectory`, `crossesStores`,
  ///   `notPermitted` for what can't be moved or can't be moved there, `invalidName`, `invalidValue` for a
  ///   scratch file that is no value of the key it replaces, `readOnly`, `noSpace`.
  public func rename(
    _ name: some Collection<UInt8>, in directory: Node, to newName: some Collection<UInt8>,
    in newDirectory: Node, replacing: Bool, by caller: Caller, _ permit: Permit? = nil
  ) throws(StoreError) {
    let source = try child(of: directory, named: name)
    let target = try target(named: newName, in: newDirectory.place, for: source.place)
    guard source.place != target else { return }
    let isTaken = try exists(target)
    guard replacing || !isTaken else { throw .exists }
    try move(source, to: target, isTaken: isTaken, by: caller, permit)
  }

  /// Where something of the kind of `source` would be under `name`.
  private func target(
    named name: some Collection<UInt8>, in directory: Place, for source: Place
  ) throws(StoreError) -> Place {
    guard source.isMovable else { throw .notPermitted(reason: "this is always here") }
    guard directory.area != .fixed else { throw .notPermitted(reason: "nothing can be moved here") }
    guard source.area == directory.area else { throw .crossesStores }
    // Between classes mv copies, and the copy is a new item.
    if let itemClass = directory.itemClass, itemClass != source.itemClass { throw .crossesStores }
    return try newPlace(named: name, in: directory, for: source)
  }

  private func newPlace(
    named name: some Collection<UInt8>, in directory: Place, for source: Place
  ) throws(StoreError) -> Place {
    switch (source, directory) {
    case (.key, .suite), (.scratch, .suite), (.value, .item), (.otpauth, .item), (.scratch, .item):
      guard source.area == .settings || source.parent == directory else {
        throw .notPermitted(reason: "an item's files stay with their item")
      }
      let target = try newFile(name, in: directory)
      guard source.secret == nil || target.secret == nil || target == source else {
        throw .notPermitted(reason: "an item's secrets don't take each other's place")
      }
      return target
    case (.view(.file), .view(.folder(let folder))): return try newViewFile(name, in: folder, renaming: true)
    case (.scratch, .view(.folder(let folder))): return try newViewFile(name, in: folder)
    case (.item(let item), .itemClass(.other)) where item.itemClass == .other:
      return .item(ItemPlace(itemClass: .other, folder: nil, name: try PathName(creating: name)))
    case (.suite, .defaults), (.folder, .itemClass), (.item, .folder):
      return try newDirectory(name, in: directory)
    default:
      throw .notPermitted(reason: "this can't be moved there")
    }
  }

  private func move(
    _ source: Node, to target: Place, isTaken: Bool, by caller: Caller, _ permit: Permit?
  ) throws(StoreError) {
    let place = source.place
    if isTaken, let replaced = nodes.withLock({ $0.known(target) }) { keepStatus(of: replaced) }
    // A setting's new value is never visible under the file that it replaces: the kernel knows another size of that one.
    let moveNode: @Sendable () -> Void = { [self] in
      keepEntry(ofFileAt: target)
      nodes.withLock { $0.move(place, to: target) }
    }
    switch (place, target) {
    case (.key(let old), .key(let new)):
      try withViewsFollowing([Views.SettingRename(old.suite, old.key, to: new.suite, new.key)]) {
        () throws(StoreError) in
        try moveKey(old, to: new, source, by: caller, moveNode)
      }
      showMoved(old, at: new)
    case (.key, .scratch(let scratch)), (.value, .scratch(let scratch)), (.otpauth, .scratch(let scratch)),
      (.view, .scratch(let scratch)):
      try setAside(place, as: scratch, permit)
    case (.view(.file(_, let old)), .view(.file(_, let new))): try moveView(old, to: new)
    case (.scratch(let scratch), .key), (.scratch(let scratch), .value), (.scratch(let scratch), .otpauth),
      (.scratch(let scratch), .view):
      try save(scratch, as: target, Commit(permit: permit, beforePublishing: moveNode))
    case (.scratch(let old), .scratch(let new)): try moveScratch(old, to: new)
    default: try moveDirectory(place, to: target, isTaken: isTaken)
    }
    nodes.withLock { $0.finishMove(of: source, from: place, to: target) }
  }

  // MARK: Files

  private func moveKey(
    _ old: KeyPlace, to new: KeyPlace, _ source: Node, by caller: Caller,
    _ moveNode: @Sendable () -> Void
  ) throws(StoreError) {
    try commitPending(source)
    let isSave = source.state.withLock { $0.creator != nil && $0.creator == caller.process }
    guard old.suite == new.suite else { return try moveAcross(old, to: new, isSave: isSave, moveNode) }
    let suite = settings.suite(old.suite)
    try suite.update(moving: (old.key, new.key), beforePublishing: moveNode) {
      (contents) throws(StoreError) in
      guard let setting = contents.settings.removeValue(forKey: old.key) else { throw .notFound }
      let existing = contents.settings[new.key]
      contents.settings[new.key] = try moved(setting, onto: existing, at: new, isSave: isSave)
    }
  }

  /// An overlay at `new` is replaced with the value; the overlay of `old` moves with it.
  private func showMoved(_ old: KeyPlace, at new: KeyPlace) {
    overlay.withLock { overlay in
      overlay.pending[.key(new)] = nil
      overlay.setAside[.key(new)] = nil
      overlay.emptyTypes[new] = overlay.emptyTypes.removeValue(forKey: old)
    }
  }

  /// The new name is stored first, and on the disk: a crash between the two leaves both.
  private func moveAcross(
    _ old: KeyPlace, to new: KeyPlace, isSave: Bool, _ moveNode: @Sendable () -> Void
  ) throws(StoreError) {
    guard let entry = try settings.suite(old.suite).fetch()?.entries[old.key] else { throw .notFound }
    let setting = Setting(entry.value, modified: entry.modified)
    try settings.suite(new.suite).update(beforePublishing: moveNode) { (contents) throws(StoreError) in
      contents.settings[new.key] = try moved(
        setting, onto: contents.settings[new.key], at: new, isSave: isSave)
    }
    try settings.suite(new.suite).synchronize()
    try settings.suite(old.suite).update { contents in
      // It may have been changed in between: then both stay.
      if contents.settings[old.key]?.value == setting.value { contents.settings[old.key] = nil }
    }
  }

  /// A key replaces another whole; a program that made a file to save (perl, patch) keeps the key's type.
  private func moved(
    _ setting: Setting, onto existing: Setting?, at new: KeyPlace, isSave: Bool
  ) throws(StoreError) -> Setting {
    guard isSave, let type = settledType(of: existing?.value, at: new), type != setting.value.type else {
      return setting
    }
    let content = try settings.codec.content(of: setting.value)
    return Setting(try settings.codec.value(of: content, as: type), modified: setting.modified)
  }

  /// A key that is only being created is stored first, so that there is something to move.
  private func commitPending(_ node: Node) throws(StoreError) {
    let place = node.place
    guard overlay.withLock({ $0.pending[place] != nil }) else { return }
    for writer in node.state.withLock({ Array($0.writers.values) }) { try writer.commitNow() }
  }

  /// Hides the value from the mount under a scratch name; the store keeps it until a new one is there.
  private func setAside(
    _ place: Place, as scratch: ScratchPlace, _ permit: Permit?
  ) throws(StoreError) {
    let file = try ScratchFile(quota: quota(for: scratch))
    let content = try committedContent(of: node(at: place), permit)
    try content.withBytes { (bytes) throws(StoreError) in try file.write(bytes, at: 0) }
    try removeSetAside(as: scratch, except: place)
    overlay.withLock { overlay in
      overlay[scratch] = file
      if !overlay.dropPending(place) { overlay.setAside[place] = scratch }
    }
  }

  private func save(
    _ scratch: ScratchPlace, as target: Place, _ commit: Commit
  ) throws(StoreError) {
    guard let file = overlay.withLock({ $0[scratch] }) else { throw .notFound }
    guard !file.isLink else { throw .notPermitted(reason: "a value can't be a symbolic link") }
    if case .otpauth = target { try requireOtpauth() }
    try store(file, at: target, commit)
    overlay.withLock { $0[scratch] = nil }
    // Through a scratch name a value got another name: the old one goes.
    try removeSetAside(as: scratch, except: target)
  }

  private func moveScratch(_ old: ScratchPlace, to new: ScratchPlace) throws(StoreError) {
    try removeSetAside(as: new)
    overlay.withLock { overlay in
      overlay[new] = overlay[old]
      overlay[old] = nil
      for (place, scratch) in overlay.setAside where scratch == old { overlay.setAside[place] = new }
    }
  }
}

extension Place {
  fileprivate enum Area: Equatable {
    case settings
    case keychain
    case views(ViewFolder)
    case fixed
  }

  fileprivate var area: Area {
    switch self {
    case .defaults, .suite, .key: .settings
    case .keychain, .itemClass, .folder, .item, .value, .otpauth, .code: .keychain
    case .view(let place): .views(place.folder)
    case .scratch(let place):
      switch place.directory {
      case .suite: .settings
      case .item: .keychain
      case .views(let folder): .views(folder)
      }
    case .root, .control, .status, .events, .history: .fixed
    }
  }

  fileprivate var isMovable: Bool {
    switch self {
    case .suite, .key, .folder, .item, .value, .otpauth, .scratch, .view(.file): true
    default: false
    }
  }

  fileprivate var itemClass: ItemClass? {
    switch self {
    case .itemClass(let itemClass): itemClass
    case .folder(let place): place.itemClass
    case .item(let place), .value(let place), .otpauth(let place): place.itemClass
    case .scratch(let place):
      if case .item(let item) = place.directory { item.itemClass } else { nil }
    default: nil
    }
  }
}
