public import Model
import SecretMemory
public import Store
import Synchronization
import ViewFormats

/// The views of a keychain: files of other programs' formats whose values are items and settings.
///
/// Every method may be called from any thread. A view is read under the rights of every item in it, and is written in one
/// transaction of the vault.
public final class Views: Sendable {
  let keychain: KeychainStore
  let settings: SettingsStore
  let paths: any ViewPaths
  let pendingRenames: PendingRenames?
  let known = Mutex<[ItemID: Known]>([:])
  /// Views that were removed and of which no version is kept.
  let removedViews = Mutex<[ExactString: RemovedView]>([:])
  let measuring = Mutex(Measuring.atOnce)
  /// Held while a view is changed: from its template as it is to the one that is stored.
  let changing = Mutex(())

  /// The remembered state of a view.
  struct Known {
    /// The last template that was read, and the document that it is of.
    var template: (document: SealedDocument, template: ViewTemplate)?
    /// The last length that was computed, and of what; nil as the length: it can't be computed.
    var length: (length: Int?, basis: [UInt8])?
    /// The last faults that were found, in what, and whether the keychain was open.
    var problems: (problems: [Problem], basis: [UInt8], isOpen: Bool)?
    /// The last state that watchers were notified of.
    var announced: [UInt8]?
    /// When the document had changed last, as its own last change was reported.
    var documentChange: Timestamp?
    /// How many writes of it are under way, which are reported when they are done.
    var writes = 0
    /// Whether its length is being computed on another thread.
    var isBeingMeasured = false
  }

  /// - Parameters:
  ///   - keychain: keeps the views, and their items.
  ///   - settings: the settings that views may refer to.
  ///   - paths: the paths of the tree.
  ///   - pendingRenames: where renames of settings wait while the vault is locked; nil: views don't follow those.
  public init(
    keychain: KeychainStore, settings: SettingsStore, paths: any ViewPaths,
    pendingRenames: PendingRenames? = nil
  ) {
    (self.keychain, self.settings, self.paths) = (keychain, settings, paths)
    self.pendingRenames = pendingRenames
    keychain.followRenames { [weak self] (renames) throws(StoreError) in
      guard let self else { return [] }
      return try documents(following: renames)
    }
  }

  /// Whether there can be views: the keychain is a vault.
  public var areSupported: Bool { keychain.keepsDocuments }

  /// Every view, in no particular order. - Throws: what reading the keychain throws.
  public func all() throws(StoreError) -> [View] {
    try keychain.documents(below: View.prefix).compactMap { View($0) }
  }

  /// The view of a name; nil: there is none. - Throws: what reading the keychain throws.
  public func view(_ name: ExactString) throws(StoreError) -> View? {
    try keychain.document(ExactString(View.prefix + name.string)).flatMap { View($0) }
  }

  /// - Throws: `notFound`.
  public func existing(_ name: ExactString) throws(StoreError) -> View {
    guard let view = try view(name) else { throw .notFound }
    return view
  }

  /// Runs `body` with a view. Where the view has changed meanwhile, as it follows the new names of items, runs it again with the view
  /// as it is then.
  ///
  /// - Throws: what `body` throws for a view that has not changed.
  func whileUnchanged<Value: ~Copyable>(
    _ view: View, _ body: (View) throws(StoreError) -> Value
  ) throws(StoreError) -> Value {
    var last = view
    for _ in 1..<Self.mostAttempts {
      let result = Result { () throws(StoreError) in try body(last) }
      guard let present = try self.view(view.name), !present.document.isSameText(as: last.document) else {
        return try result.get()
      }
      last = present
    }
    return try body(last)
  }

  static let mostAttempts = 32

  /// The template of a view, as it is stored now.
  ///
  /// - Throws: `locked`, `damaged`, `invalidValue`; `interrupted` where the view has changed since it was read.
  func template(of view: View) throws(StoreError) -> ViewTemplate {
    if let last = known.withLock({ $0[view.document.id]?.template }),
      last.document.isSameText(as: view.document)
    {
      return last.template
    }
    let text = try keychain.text(of: view.document)
    let template: ViewTemplate
    do throws(ViewError) {
      template =
        view.format.isWritable
        ? try ViewTemplate(encoded: text) : try ViewTemplate(templateText: text, view.dialect)
    } catch { throw StoreError(error) }
    // A text is stored before its document shows that.
    if Self.bytes(of: template) != view.document.properties[Property.references] ?? [] {
      try keychain.refresh()
      if let present = try self.view(view.name), !present.document.isSameText(as: view.document) {
        throw .interrupted
      }
    }
    known.withLock { $0[view.document.id, default: Known()].template = (view.document, template) }
    return template
  }

  /// The present item of a source; nil: there is none, or it is a setting.
  func item(at path: String) throws(StoreError) -> Item? {
    guard case .item(let identity) = try paths.source(at: path) else { return nil }
    return try keychain.item(with: identity)
  }
}

extension SealedDocument {
  /// Whether both have the text of one moment.
  func isSameText(as other: SealedDocument) -> Bool {
    id == other.id && modified == other.modified && size == other.size
      && properties[Property.dialect] == other.properties[Property.dialect]
  }
}
