public import Model
import Notifier
import Platform
import SecretMemory
import Store
import Synchronization
import Views

// `views` and `templates`: there where the keychain is a vault.
extension FileTree {
  var viewFolders: [Place] {
    views?.areSupported == true ? [.view(.folder(.views)), .view(.folder(.templates))] : []
  }

  /// - Throws: `unsupported` for a keychain that is no vault.
  func requireViews() throws(StoreError) -> Views {
    try requireKeychain().requireDocuments()
    guard let views else { throw .notFound }
    return views
  }

  /// The view of a file.
  ///
  /// - Throws: `notFound`.
  func view(_ name: ExactString, in folder: ViewFolder) throws(StoreError) -> View {
    let view = try requireViews().existing(name)
    guard folder == .views || view.isTemplate else { throw .notFound }
    return view
  }

  func viewPlace(of name: some Collection<UInt8>, in folder: ViewFolder) throws(StoreError) -> Place {
    if let scratch = existingScratch(name, in: .views(folder)) { return .scratch(scratch) }
    guard let plain = try PathName(lookingUp: name).plain else { throw .notFound }
    let place = ViewPlace.file(folder, plain)
    guard try viewExists(place) else { throw .notFound }
    return .view(place)
  }

  func viewExists(_ place: ViewPlace) throws(StoreError) -> Bool {
    guard case .file(let folder, let name) = place else { return !viewFolders.isEmpty }
    let (isPending, isAside) = overlay.withLock { overlay in
      (overlay.pending[.view(place)] != nil, overlay.setAside[.view(place)] != nil)
    }
    if isPending || isAside { return isPending }
    return try isStored(name, in: folder)
  }

  private func isStored(_ name: ExactString, in folder: ViewFolder) throws(StoreError) -> Bool {
    guard let view = try requireViews().view(name) else { return false }
    return folder == .views || view.isTemplate
  }

  func files(in folder: ViewFolder) throws(StoreError) -> [Place] {
    let views = try requireViews().all().filter { folder == .views || $0.isTemplate }
    var places = Set(views.map { Place.view(.file(folder, $0.name)) })
    overlay.withLock { overlay in
      places.subtract(overlay.setAside.keys)
      places.formUnion(overlay.pending.keys.filter { $0.parent == .view(.folder(folder)) })
      places.formUnion(overlay.scratchPlaces(in: .views(folder)))
    }
    return Array(places)
  }

  func status(ofView name: ExactString, in folder: ViewFolder) throws(StoreError) -> NodeStatus {
    if let pending = overlay.withLock({ $0.pending[.view(.file(folder, name))] }) {
      return file(size: 0, modified: pending.created)
    }
    let view = try view(name, in: folder)
    guard folder == .views else { return file(size: view.document.size, modified: view.document.modified) }
    let status = try requireViews().status(of: view)
    return file(size: status.size, modified: status.modified)
  }

  func isViewUnlocked(_ place: ViewPlace) -> Bool {
    // The text of a template has no secret, and survives a lock.
    guard case .file(.views, let name) = place, let keychain, let view = try? view(name, in: .views) else {
      return true
    }
    return view.references.allSatisfy { path in
      guard case .item(let identity)? = try? TreePaths().source(at: path),
        let item = try? keychain.item(with: identity)
      else { return true }
      return keychain.engine.locking.isAccessible(item)
    }
  }

  func checkWritable(_ name: ExactString, in folder: ViewFolder) throws(StoreError) {
    guard folder == .views else { return try requireKeychain().requireWritable() }
    try requireViews().requireWritable(try view(name, in: folder))
  }
}

// MARK: - Questions

extension FileTree {
  func permission(
    toOpenView name: ExactString, writing: Bool, by caller: Caller
  ) throws(StoreError) -> Permission {
    let views = try requireViews()
    // A removed one is made again by the file that takes its place.
    var view = try views.view(name)
    if view == nil { view = try views.removed(name) }
    guard let view else { throw .notFound }
    return try views.permission(toOpen: view, writing: writing, by: caller)
  }

  /// Before a file is made where a view stands, or has stood before an editor has set it aside.
  func permission(
    toReplaceView name: some Collection<UInt8>, by caller: Caller
  ) throws(StoreError) -> Permission? {
    guard let plain = try? PathName(lookingUp: name).plain else { return nil }
    let isStored = try isStored(plain, in: .views)
    if !isStored, try requireViews().removed(plain) == nil { return nil }
    return try permission(toOpenView: plain, writing: true, by: caller)
  }

  /// Before a scratch file takes the place of a view, and before a view is set aside as one.
  func permission(
    toRenameView name: some Collection<UInt8>, in directory: Node, to newName: some Collection<UInt8>,
    by caller: Caller
  ) throws(StoreError) -> Permission? {
    switch try child(of: directory, named: name).place {
    case .scratch: return try permission(toReplaceView: newName, by: caller)
    case .view(.file(_, let view)):
      guard case .scratch? = try? newViewFile(newName, in: .views, renaming: true) else { return nil }
      return try permission(toOpenView: view, writing: true, by: caller)
    default: return nil
    }
  }
}

// MARK: - Content

extension FileTree {
  func openView(
    _ name: ExactString, in folder: ViewFolder, _ node: Node, _ mode: OpenMode, _ caller: Caller,
    _ permit: Permit?
  ) throws(StoreError) -> Handle {
    let place = Place.view(.file(folder, name))
    var state = Handle.State()
    state.permit = permit?.ofHandle
    if !overlay.withLock({ $0.pending[place] != nil }) {
      if mode.contains(.write) { try checkWritable(name, in: folder) }
      if let content = try contentOfView(name, in: folder, mode, permit) {
        if folder == .views { state.viewBase = content }
        if !mode.contains(.truncate) { state.draft = .untouched(content) }
      }
    }
    guard !node.isRemoved else { throw .notFound }
    begin(&state, mode, node, caller)
    let handle = Handle(node, in: self, mode: mode, state: state)
    do throws(StoreError) {
      // A lock that came meanwhile may have missed the handle.
      guard isUnlocked(place) else { throw .locked }
      try permit?.requireUnchangedCaller()
    } catch {
      handle.abandon()
      handle.seal()
      throw error
    }
    return handle
  }

  /// nil: it can't be rendered, and is about to be written as a whole, which mends it.
  private func contentOfView(
    _ name: ExactString, in folder: ViewFolder, _ mode: OpenMode, _ permit: Permit?
  ) throws(StoreError) -> Content? {
    do throws(StoreError) { return try contentOfView(name, in: folder, permit) } catch {
      switch error {
      case .missingPart, .notRepresentable:
        guard mode.isSuperset(of: [.write, .truncate]) else { throw error }
        return nil
      default: throw error
      }
    }
  }

  func contentOfView(
    _ name: ExactString, in folder: ViewFolder, _ permit: Permit?
  ) throws(StoreError) -> Content {
    let (views, view) = (try requireViews(), try view(name, in: folder))
    return .secret(folder == .views ? try views.render(view, permit) : try views.templateText(of: view))
  }

  func storeView(
    _ content: Content, appending: Bool, _ name: ExactString, in folder: ViewFolder, _ commit: Commit
  ) throws(StoreError) {
    let views = try requireViews()
    if appending, folder == .views {
      let added = try secretCopy(of: content)
      return try views.append(
        added, to: name, commit.permit, limit: Self.secretLimit, modified: commit.modified)
    }
    var whole = content
    if appending {
      whole = try contentOfView(name, in: folder, commit.permit)
      try content.withBytes { (bytes) throws(StoreError) in try whole.append(bytes) }
    }
    guard whole.count <= Self.secretLimit else { throw .tooLarge(limit: Self.secretLimit) }
    let bytes = try secretCopy(of: whole)
    guard folder == .views else { return try views.setTemplate(name, to: bytes, modified: commit.modified) }
    var base: SecretBytes?
    if let content = commit.base { base = try secretCopy(of: content) }
    try views.store(bytes, as: name, since: base, commit.permit, modified: commit.modified)
  }
}

// MARK: - Names

extension FileTree {
  /// The view or the scratch file that a name would be. `renaming`: of a view, which gets the name.
  func newViewFile(
    _ name: some Collection<UInt8>, in folder: ViewFolder, renaming: Bool = false
  ) throws(StoreError) -> Place {
    if let scratch = existingScratch(name, in: .views(folder)) { return .scratch(scratch) }
    let views = try requireViews()
    let text = try scratchName(name)
    guard !ScratchName.isScratchInViews(text.string, of: try views.all().map(\.name)) else {
      return .scratch(ScratchPlace(directory: .views(folder), name: text))
    }
    let isStored = try isStored(text, in: folder)
    var isAllowed = renaming || folder == .templates || isStored
    // `mv` from another file system has removed it to put this one in its place.
    if !isAllowed { isAllowed = try views.removed(text) != nil }
    guard isAllowed else {
      throw .notPermitted(reason: "`keyhole view \(text.string.quotedForShell)` makes a view")
    }
    try TreePaths().checkName(text.string)
    return .view(.file(folder, text))
  }

  func removeView(_ name: ExactString, in folder: ViewFolder) throws(StoreError) {
    let place = Place.view(.file(folder, name))
    let wasPending = overlay.withLock { overlay in
      overlay.setAside[place] = nil
      return overlay.pending.removeValue(forKey: place) != nil
    }
    guard try isStored(name, in: folder) else {
      guard wasPending else { throw .notFound }
      return
    }
    try requireViews().remove(try view(name, in: folder))
  }

  func moveView(_ name: ExactString, to newName: ExactString) throws(StoreError) {
    let views = try requireViews()
    try views.rename(try views.existing(name), to: newName)
  }
}

// MARK: - Changes

extension FileTree {
  /// The changes of views that a change of the stores brings along. To be called for every change in turn, after `record`.
  public func changesOfViews(after change: Change) -> [Change] {
    guard let views, views.areSupported else { return [] }
    let changed = views.viewsChanged(by: change)
    if case .keychain = change.subject, change.kind == .unlocked {
      Background.run { [self] in beginFollowingViews() }
    }
    let unmeasured = views.viewsToMeasure(after: change, changed)
    if !unmeasured.isEmpty, !options.isReadOnly {
      Background.run { views.sealLengths(of: unmeasured) }
    }
    let origin = change.origin == .local ? .indirect : change.origin
    return changed.map { Change(.modified, .document($0.document.id, $0.document.name), origin: origin) }
  }

  /// Once the keychain can be read: takes the views as they are for known, and finishes renames that were interrupted.
  func beginFollowingViews() {
    views?.beginFollowing()
    if !options.isReadOnly { views?.finishRenames() }
  }

  /// The files of the view whose document has this name.
  func viewPlaces(ofDocument name: ExactString) -> [Place] {
    guard case let parts = name.string.unicodeScalars.split(separator: "/", maxSplits: 1), parts.count == 2,
      parts[0].elementsEqual(ViewFolder.views.rawValue.unicodeScalars)
    else { return [] }
    let view = ExactString(String(parts[1]))
    let text = Place.view(.file(.templates, view))
    let hasText = nodes.withLock { $0.known(text) != nil } || (try? exists(text)) == true
    return [.view(.file(.views, view))] + (hasText ? [text] : [])
  }

  func replays(_ change: Change, ofDocument name: ExactString) -> [TreeReplay] {
    guard change.origin != .local else { return [] }
    let places = viewPlaces(ofDocument: name)
    guard change.kind == .moved else {
      return ReplayKind(change.kind).map { kind in places.map { TreeReplay(kind, $0) } } ?? []
    }
    var old: [Place] = []
    if case .document(_, let name)? = change.previous { old = viewPlaces(ofDocument: name) }
    return old.map { TreeReplay(.deletion, $0) } + places.map { TreeReplay(.creation, $0) }
  }
}
