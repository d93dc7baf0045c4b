public import Model
public import SecretMemory
public import Store
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

  /// The view that had a name, as it was when it was removed; nil: there is one of that name, or nothing is kept of it.
  ///
  /// `mv` from another file system removes a file before it makes the new one: then that one is this view again.
  public func removed(_ name: ExactString) throws(StoreError) -> View? {
    try removedVersion(name).flatMap { SealedDocument($0) }.flatMap { View($0) }
  }

  private func removedVersion(_ name: ExactString) throws(StoreError) -> ItemVersion? {
    guard try view(name) == nil, let last = try versions(of: name).last, last.changes.contains(.removal)
    else {
      return nil
    }
    return last
  }

  /// Makes a removed view again, where its file is written.
  func bringBack(_ name: ExactString) throws(StoreError) {
    guard let version = try removedVersion(name) else { return }
    try keychain.restore(version)
  }
}
