public import Model
import SecretMemory
import Store
import Synchronization
import ViewFormats

// Views follow the names of items and settings. What an item is called changes in the transaction that changes its views. A setting is
// a file of its own: what is about to happen is noted in the views before, and finished afterwards, or at the next start.
extension Views {
  /// The views that refer to items which get other names, as they have to be then.
  func documents(
    following renames: [(from: ItemIdentity, to: ItemIdentity)]
  ) throws(StoreError) -> [FollowingDocument] {
    let new = Dictionary(renames.map { (ViewSource.item($0.from), paths.path(of: .item($0.to))) }) {
      first, _ in first
    }
    let places = try newPlaces(after: renames)
    var documents: [FollowingDocument] = []
    for view in try all() {
      guard let document = try document(of: view, newPlace: places[view.newPlace], { new[$0] }) else {
        continue
      }
      documents.append(document)
    }
    return documents
  }

  /// The folders of services that are renamed with all their items, by the old ones. One that takes in the items of another is not.
  private func newPlaces(
    after renames: [(from: ItemIdentity, to: ItemIdentity)]
  ) throws(StoreError) -> [String: String] {
    var services: [ExactString: Set<ExactString>] = [:]
    for case (.generic(let old, let account), .generic(let new, let newAccount)) in renames
    where old != new && account == newAccount {
      services[old, default: []].insert(new)
    }
    guard !services.isEmpty else { return [:] }
    let moved = Set(renames.map(\.from))
    var places: [String: String] = [:]
    for (old, news) in services {
      guard let new = news.first, news.count == 1 else { continue }
      let staying = try keychain.read { index in
        (index.items(in: old, of: .generic) + index.items(in: new, of: .generic)).map(\.identity)
      }
      guard staying.allSatisfy(moved.contains) else { continue }
      places[place(of: old)] = place(of: new)
    }
    return places
  }

  private func place(of service: ExactString) -> String {
    String(paths.path(of: .item(.generic(service: service, account: "x"))).dropLast(2))
  }

  /// nil: none of its references has another path, nor has the folder of its new entries.
  private func document(
    of view: View, newPlace: String? = nil, _ path: @escaping (ViewSource) -> String?
  ) throws(StoreError) -> FollowingDocument? {
    let replacement = { [paths] (reference: String) in (try? paths.source(at: reference)).flatMap(path) }
    let isNewPlace = newPlace != nil && view.format.isWritable
    guard isNewPlace || view.references.contains(where: { replacement($0) != nil }) else { return nil }
    let text: SecretBytes
    do throws(ViewError) {
      let stored = HeldSecret(try storedText(of: view))
      if view.format.isWritable {
        let template = try ViewTemplate(encoded: stored.bytes)
        text = try template.replacingReferences { replacement($0.reference) ?? $0.reference }.encoded()
      } else {
        text = try ViewTemplate.templateText(stored.bytes, replacing: replacement)
      }
    } catch { throw StoreError(error) }
    var change = DocumentChange(
      of: view.document, name: view.document.name, properties: view.document.ownProperties)
    var seen: Set<String> = []
    let references = view.references.map { replacement($0) ?? $0 }.filter { seen.insert($0).inserted }
    change.properties[Property.references] = Array(references.joined(separator: "\n").utf8)
    change.properties[Property.moving] = nil
    if isNewPlace, let newPlace { change.properties[Property.newPlace] = Array(newPlace.utf8) }
    // The values are the same, and so is the length, unless two references are one now.
    if references.count == view.references.count, let sealed = view.sealedLength,
      let states = try? states(of: view),
      Self.basis(of: view.document, states) == sealed.basis
    {
      change.properties[Property.length] = Array("\(sealed.length)".utf8)
      change.properties[Property.basis] = Self.basis(
        modified: change.modified, dialect: change.properties[Property.dialect], states)
    }
    return FollowingDocument(change, text)
  }

  private func storedText(of view: View) throws(ViewError) -> SecretBytes {
    do throws(StoreError) { return try keychain.text(of: view.document) } catch {
      throw ViewError(error, entry: nil)
    }
  }
}

// MARK: - Settings

extension Views {
  /// A setting's rename, as it is noted in a view until it is finished.
  public struct SettingRename: Hashable, Sendable {
    /// The suite and key until now.
    public let from: ViewSource
    /// The suite and key afterwards.
    public let to: ViewSource

    /// The key of a suite gets another name, or another suite.
    public init(_ suite: ExactString, _ key: ExactString, to newSuite: ExactString, _ newKey: ExactString) {
      (from, to) = (.setting(suite: suite, key: key), .setting(suite: newSuite, key: newKey))
    }

    /// The old path, a tab and the new one.
    func line(_ paths: any ViewPaths) -> String { paths.path(of: from) + "\t" + paths.path(of: to) }
  }

  /// Runs `rename`, and has the views follow the settings' names. Where it is interrupted, `finishRenames` does the rest.
  ///
  /// While the vault is locked, the renames are noted in the state folder, and finished when it is open.
  /// - Throws: what `rename` throws.
  public func following(
    _ renames: [SettingRename], _ rename: () throws(StoreError) -> Void
  ) throws(StoreError) {
    guard areSupported, keychain.engine.locking.lockState == .open else {
      // One that was never unlocked does not say what it supports.
      if keychain.engine.authenticatesItems { pendingRenames?.add(renames, paths) }
      return try rename()
    }
    // They come before this one.
    if pendingRenames?.isEmpty == false { finishRenames() }
    var isFollowed = false
    do throws(StoreError) { isFollowed = try note(renames) } catch { pendingRenames?.add(renames, paths) }
    defer { if isFollowed { finishRenames() } }
    try rename()
  }

  /// The views that refer to one of the settings remember what is about to happen. - Returns: whether there are any.
  @discardableResult func note(_ renames: [SettingRename]) throws(StoreError) -> Bool {
    let sources = Set(renames.map(\.from))
    var isAny = false
    for view in try all() {
      // A rename that is not finished may be followed by another one.
      let unfinished = renamed(View.lines(view.document.text(Property.moving))).values
      let used = Set((view.references + unfinished).compactMap { try? paths.source(at: $0) })
        .intersection(sources)
      guard !used.isEmpty else { continue }
      isAny = true
      let lines = lines(of: renames.filter { used.contains($0.from) })
      try change(view) { properties in
        let former = View.lines(properties[Property.moving].flatMap { ExactString(utf8: $0) }?.string)
        properties[Property.moving] = Array((former + lines).joined(separator: "\n").utf8)
      }
    }
    return isAny
  }

  private func lines(of renames: [SettingRename]) -> [String] {
    renames.map { $0.line(paths) }
  }

  /// Finishes what an interruption or a lock has left of renames of settings: a view refers to the new name where the setting has it. It
  /// does nothing where the vault can't be changed.
  public func finishRenames() {
    guard areSupported, keychain.engine.locking.lockState == .open, let views = try? all() else { return }
    let pending = pendingRenames?.take() ?? []
    var isFinished = true
    for view in views {
      let noted = view.document.text(Property.moving)
      guard noted != nil || !pending.isEmpty else { continue }
      do throws(StoreError) { try finish(view, View.lines(noted) + pending, isNoted: noted != nil) } catch {
        isFinished = false
      }
    }
    if isFinished, !pending.isEmpty { pendingRenames?.finish() }
  }

  /// The last names of settings by their first ones.
  private func renamed(_ lines: [String]) -> [String: String] {
    var names: [String: String] = [:]
    for line in lines {
      let parts = line.split(separator: "\t", omittingEmptySubsequences: false).map { String($0) }
      guard parts.count == 2 else { continue }
      for (first, last) in names where last == parts[0] { names[first] = parts[1] }
      names[parts[0]] = parts[1]
    }
    return names
  }

  /// `isNoted`: the view itself has a note, which goes.
  private func finish(_ view: View, _ lines: [String], isNoted: Bool) throws(StoreError) {
    var done: [ViewSource: String] = [:]
    for (first, last) in renamed(lines) {
      guard let source = try? paths.source(at: first) else { continue }
      // Of a rename that did not happen the old name is there.
      guard try state(at: first) == nil, try state(at: last) != nil else { continue }
      done[source] = last
    }
    try changing.withLock { _ throws(StoreError) in
      guard let document = try document(of: view, { done[$0] }) else {
        guard isNoted else { return }
        return try change(view) { properties in properties[Property.moving] = nil }
      }
      let text = HeldSecret(try document.copyOfText())
      try keychain.apply(keeping: [document.change]) { (_) throws(StoreError) in try text.copy() }
    }
  }
}
