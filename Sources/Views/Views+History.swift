public import Model
public import SecretMemory
public import Store
import Synchronization
import ViewFormats

// Earlier versions of views: what they were made of, without a value. The values are in the history of the items.
extension Views {
  /// The versions of the view of a name, and of those of that name that were removed, the oldest first; empty: none are kept.
  ///
  /// - Throws: as `KeychainStore.versions(of:)`.
  public func versions(of name: ExactString) throws(StoreError) -> [ItemVersion] {
    try keychain.versions(ofDocument: Self.documentName(name))
  }

  /// The name of the view that an item holds, or held; nil: it holds none.
  public static func name(of identity: ItemIdentity) -> ExactString? {
    guard let name = identity.documentName?.string, name.hasPrefix(View.prefix) else { return nil }
    return ExactString(String(name.dropFirst(View.prefix.count)))
  }

  /// The text of a version: of a template as it was written, of another view its file with a reference `{{ PATH }}` in the place of
  /// each value.
  ///
  /// - Throws: `notFound` for a version of a format that is not known, `locked`, `damaged`, `outOfMemory`.
  public func text(of version: ItemVersion) throws(StoreError) -> SecretBytes {
    guard let view = SealedDocument(version).flatMap({ View($0) }) else { throw .notFound }
    let text = try keychain.text(of: view.document)
    guard view.format.isWritable else { return text }
    do throws(ViewError) { return try ViewTemplate(encoded: text).outline() } catch {
      throw StoreError(error)
    }
  }

  /// The views that were removed and of which a version is kept, as they were; none of a name that a view has.
  public func removed() throws(StoreError) -> [View] {
    var views: [View] = []
    for name in try keychain.identitiesWithVersions().compactMap({ Self.name(of: $0) }) {
      if let view = try removedVersion(name).flatMap({ SealedDocument($0) }).flatMap({ View($0) }) {
        views.append(view)
      }
    }
    return views
  }

  /// The present text of a view, as `text(of:)` gives that of a version.
  public func outline(of view: View) throws(StoreError) -> SecretBytes {
    guard view.format.isWritable else { return try keychain.text(of: view.document) }
    let template = try template(of: view)
    do throws(ViewError) { return try template.outline() } catch { throw StoreError(error) }
  }

  /// The view that had a name, as it was when it was removed; nil: there is one of that name, or nothing is kept of it.
  ///
  /// `mv` from another file system removes a file before it makes the new one: then that one is this view again.
  public func removed(_ name: ExactString) throws(StoreError) -> View? {
    if let view = try removedVersion(name).flatMap({ SealedDocument($0) }).flatMap({ View($0) }) {
      return view
    }
    return try rememberedView(name).flatMap { View($0.document) }
  }

  /// A view of which no version is kept, for a minute after it was removed.
  private func rememberedView(_ name: ExactString) throws(StoreError) -> RemovedView? {
    guard try view(name) == nil else { return nil }
    return removedViews.withLock { views in
      views = views.filter { !$0.value.isOver }
      return views[name]
    }
  }

  /// Forgets the views of which no version is kept: before a lock.
  public func forgetRemovedViews() { removedViews.withLock { $0 = [:] } }

  func removedVersion(_ name: ExactString) throws(StoreError) -> ItemVersion? {
    guard try view(name) == nil, let last = try versions(of: name).last, last.changes.contains(.removal)
    else {
      return nil
    }
    return last
  }

  /// Makes a removed view again, where its file is written.
  func bringBack(_ name: ExactString) throws(StoreError) {
    if let version = try removedVersion(name) {
      try keychain.restore(version)
    } else if let removed = try rememberedView(name) {
      let document = removed.document
      try keep(
        DocumentChange(name: document.name, properties: document.properties, modified: document.modified),
        removed.text.bytes)
      removedViews.withLock { $0[name] = nil }
    }
  }
}

/// A view that was removed where the vault keeps no versions, in memory: `mv` of a file from another file system removes the view, and makes a
/// file of its name then.
struct RemovedView: Sendable {
  private static let patience = Duration.seconds(60)

  let document: SealedDocument
  let text: HeldSecret
  private let time = ContinuousClock.now

  var isOver: Bool { .now - time > Self.patience }

  init(document: SealedDocument, text: HeldSecret) { (self.document, self.text) = (document, text) }
}
