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
    return try documents { new[$0] }
  }

  private func documents(_ path: @escaping (ViewSource) -> String?) throws(StoreError) -> [FollowingDocument]
  {
    var documents: [FollowingDocument] = []
    for view in try all() {
      guard let document = try document(of: view, path) else { continue }
      documents.append(document)
    }
    return documents
  }

  /// nil: none of its references has another path.
  private func document(
    of view: View, _ path: @escaping (ViewSource) -> String?
  ) throws(StoreError) -> FollowingDocument? {
    let replacement = { [paths] (reference: String) in (try? paths.source(at: reference)).flatMap(path) }
    guard view.references.contains(where: { replacement($0) != nil }) else { return nil }
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
  }

  /// Runs `rename`, and has the views follow the settings' names. Where it is interrupted, `finishRenames` does the rest.
  ///
  /// While the vault is locked, views do not follow, and `problems` names them.
  /// - Throws: what `rename` throws.
  public func following(
    _ renames: [SettingRename], _ rename: () throws(StoreError) -> Void
  ) throws(StoreError) {
    let isFollowed = areSupported && ((try? note(renames)) ?? false)
    defer { if isFollowed { finishRenames() } }
    try rename()
  }

  /// The views that refer to one of the settings remember what is about to happen. - Returns: whether there are any.
  @discardableResult func note(_ renames: [SettingRename]) throws(StoreError) -> Bool {
    let sources = Set(renames.map(\.from))
    var isAny = false
    for view in try all() {
      let used = Set(view.references.compactMap { try? paths.source(at: $0) }).intersection(sources)
      guard !used.isEmpty else { continue }
      isAny = true
      let lines = renames.filter { used.contains($0.from) }.map { rename in
        paths.path(of: rename.from) + "\t" + paths.path(of: rename.to)
      }
      try change(view) { properties in
        let former = View.lines(properties[Property.moving].flatMap { ExactString(utf8: $0) }?.string)
        properties[Property.moving] = Array((former + lines).joined(separator: "\n").utf8)
      }
    }
    return isAny
  }

  /// Finishes what an interruption has left of renames of settings: a view refers to the new name where the setting has it. It does
  /// nothing where the vault can't be changed.
  public func finishRenames() {
    guard areSupported, let views = try? all() else { return }
    for view in views {
      guard let noted = view.document.text(Property.moving) else { continue }
      try? finish(view, View.lines(noted))
    }
  }

  private func finish(_ view: View, _ lines: [String]) throws(StoreError) {
    var done: [ViewSource: String] = [:]
    for line in lines {
      let parts = line.split(separator: "\t", omittingEmptySubsequences: false).map { String($0) }
      guard parts.count == 2, let source = try? paths.source(at: parts[0]) else { continue }
      // Of a rename that did not happen the old name is there.
      guard try state(at: parts[0]) == nil, try state(at: parts[1]) != nil else { continue }
      done[source] = parts[1]
    }
    try changing.withLock { _ throws(StoreError) in
      guard let document = try document(of: view, { done[$0] }) else {
        return try change(view) { properties in properties[Property.moving] = nil }
      }
      let text = HeldSecret(try document.copyOfText())
      try keychain.apply(keeping: [document.change]) { (_) throws(StoreError) in try text.copy() }
    }
  }
}
