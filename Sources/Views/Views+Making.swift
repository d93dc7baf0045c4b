public import Model
public import SecretMemory
import Store
import Synchronization
public import ViewFormats

// Views come, go, and get other names and properties. No item is changed by that.
extension Views {
  /// Makes a view of names and the paths of their values.
  ///
  /// `newPlace`: the folder in which new entries become items; nil: `keychain/generic/NAME`.
  /// - Throws: `exists`, `invalidName`, `invalidValue` for a name that the format can't have, `loop`, `locked`, `readOnly`,
  ///   `unsupported` for a keychain that is no vault.
  public func make(
    _ name: ExactString, _ format: ViewFormat, _ dialect: EnvDialect, newPlace: String?,
    _ entries: [(name: [String], reference: String)]
  ) throws(StoreError) {
    try requireNew(name)
    var normal: [(name: [String], reference: String)] = []
    for entry in entries { normal.append((entry.name, try normalPath(entry.reference, entry.name))) }
    let template: ViewTemplate
    let text: SecretBytes
    do throws(ViewError) {
      template = try ViewTemplate(format, dialect, entries: normal)
      text = try template.encoded()
    } catch { throw StoreError(error) }
    var properties = try properties(format, dialect, newPlace)
    properties[Property.references] = Self.bytes(of: template)
    try keep(DocumentChange(name: Self.documentName(name), properties: properties), text)
  }

  /// Makes a view from a text with references, or replaces the text of one.
  ///
  /// - Throws: as `make`; `exists` for a view of another format.
  public func setTemplate(
    _ name: ExactString, to text: borrowing SecretBytes, dialect: EnvDialect? = nil, replacing: Bool = true,
    modified: Timestamp? = nil
  ) throws(StoreError) {
    let present = try view(name)
    if let present {
      guard replacing, !present.format.isWritable else { throw .exists }
    } else {
      try requireNew(name)
    }
    let dialect = dialect ?? present?.dialect ?? .portable
    let template: ViewTemplate
    do throws(ViewError) {
      try ViewTemplate.checkTemplateText(text)
      template = try ViewTemplate(templateText: text, dialect)
    } catch { throw StoreError(error) }
    for slot in template.slots { _ = try normalPath(slot.reference, slot.name) }
    if let present, present.dialect == dialect {
      let stored = try keychain.text(of: present.document)
      if stored == text { return }
    }
    var properties = present?.document.ownProperties ?? [:]
    if present == nil { properties = try self.properties(.template, dialect, nil) }
    properties[Property.references] = Self.bytes(of: template)
    try keep(
      DocumentChange(
        of: present?.document, name: Self.documentName(name), properties: properties,
        modified: modified ?? .now),
      text)
  }

  /// The text of a template. - Throws: `locked`, `damaged`; `notFound` for a view of another format.
  public func templateText(of view: View) throws(StoreError) -> SecretBytes {
    guard !view.format.isWritable else { throw .notFound }
    return try keychain.text(of: view.document)
  }

  /// Removes a view. Its items stay.
  public func remove(_ view: View) throws(StoreError) {
    let text = try? held(keychain.text(of: view.document))
    try keychain.remove([view.document])
    known.withLock { $0[view.document.id] = nil }
    // Where the vault keeps nothing of it, `mv` from another file system would find no view in whose place it puts the file.
    let isPurged = view.document.properties[Item.historyAttribute] != nil
    guard let text, !isPurged, !keychain.isServedElsewhere,
      (try? removedVersion(view.name)) == .some(nil)
    else { return }
    let removed = RemovedView(document: view.document, text: text)
    removedViews.withLock { $0[view.name] = removed }
  }

  private func held(_ text: consuming SecretBytes) -> HeldSecret { HeldSecret(text) }

  /// Gives a view another name; a view that has it is removed in the same transaction.
  public func rename(_ view: View, to name: ExactString) throws(StoreError) {
    try paths.checkName(name.string)
    try changing.withLock { _ throws(StoreError) in
      let text = HeldSecret(try keychain.text(of: view.document))
      let replaced = try self.view(name)
      var change = DocumentChange(
        of: view.document, name: Self.documentName(name), properties: view.document.properties,
        modified: view.document.modified)
      change.properties[Property.newPlace] = Array(view.newPlace.utf8)
      // Links to the one that is replaced lead to this one.
      let links = view.links + (replaced?.links.filter { !view.links.contains($0) } ?? [])
      change.properties[Property.links] = Self.property(links)
      // A process that is not the one that serves the vault can't do both at once.
      if let replaced, keychain.isServedElsewhere { try remove(replaced) }
      let removed = keychain.isServedElsewhere ? nil : replaced?.document
      try keychain.apply(keeping: [change], removing: removed.map { [$0] } ?? []) { (_) throws(StoreError) in
        try text.copy()
      }
      if let removed { known.withLock { $0[removed.id] = nil } }
    }
  }

  /// Sets the dialect of an environment file, or of the filter `env` of a template.
  public func setDialect(_ dialect: EnvDialect, of view: View) throws(StoreError) {
    guard view.dialect != dialect else { return }
    guard view.format == .env || view.format == .template else {
      throw .invalidValue(reason: "only environment files and templates have dialects")
    }
    let text = try text(of: view, for: dialect)
    var change = DocumentChange(
      of: view.document, name: view.document.name, properties: view.document.ownProperties)
    change.properties[Property.dialect] = Array(dialect.rawValue.utf8)
    // Where the dialect can't carry a value, the last length is shown.
    if let (length, basis) = lastLength(of: view) {
      change.properties[Property.length] = Array("\(length)".utf8)
      change.properties[Property.basis] = basis
    }
    try keep(change, text)
  }

  private func lastLength(of view: View) -> (length: Int, basis: [UInt8])? {
    guard let last = known.withLock({ $0[view.document.id]?.length }), let length = last.length else {
      return view.sealedLength
    }
    return (length, last.basis)
  }

  /// Sets the folder in which new entries become items.
  public func setNewPlace(_ place: String, of view: View) throws(StoreError) {
    guard view.format.isWritable else { throw .invalidValue(reason: "a template gets no new entries") }
    try change(view) { (properties) throws(StoreError) in
      properties[Property.newPlace] = Array(try checkedPlace(place).utf8)
    }
  }

  /// Deletes the versions of a view, and keeps none from now on: before it is removed for good.
  public func switchOffHistory(of view: View) throws(StoreError) {
    try change(view) { properties in properties[Item.historyAttribute] = Array("0".utf8) }
  }

  /// Remembers the symbolic links to a view that were made: absolute paths.
  public func setLinks(_ links: [String], of view: View) throws(StoreError) {
    try change(view) { properties in
      properties[Property.links] = Self.property(links)
    }
  }

  private static func property(_ links: [String]) -> [UInt8]? {
    links.isEmpty ? nil : Array(links.joined(separator: "\n").utf8)
  }
}

extension Views {
  static func documentName(_ name: ExactString) -> ExactString { ExactString(View.prefix + name.string) }

  static func bytes(of template: ViewTemplate) -> [UInt8] {
    var seen: Set<String> = []
    let paths = template.slots.map(\.reference).filter { seen.insert($0).inserted }
    return Array(paths.joined(separator: "\n").utf8)
  }

  func change(
    _ view: View, _ body: (inout [ExactString: [UInt8]]) throws(StoreError) -> Void
  ) throws(StoreError) {
    var change = DocumentChange(
      of: view.document, name: view.document.name, properties: view.document.properties,
      modified: view.document.modified)
    try body(&change.properties)
    try keep(change, try keychain.text(of: view.document))
  }

  private func text(of view: View, for dialect: EnvDialect) throws(StoreError) -> SecretBytes {
    guard view.format.isWritable else { return try keychain.text(of: view.document) }
    let template = try template(of: view)
    do throws(ViewError) { return try template.replacingDialect(dialect).encoded() } catch {
      throw StoreError(error)
    }
  }

  func keep(_ change: DocumentChange, _ text: borrowing SecretBytes) throws(StoreError) {
    let copy = HeldSecret(try SecretBytes.copy(of: text))
    try keychain.apply(keeping: [change]) { (_) throws(StoreError) in try copy.copy() }
  }

  private func requireNew(_ name: ExactString) throws(StoreError) {
    try keychain.requireDocuments()
    try paths.checkName(name.string)
    guard try view(name) == nil else { throw .exists }
  }

  /// The path of an item or a setting as `ViewPaths.path` spells it.
  private func normalPath(_ path: String, _ entry: [String]) throws(StoreError) -> String {
    // Checked by `ViewFormats` with an error of its own.
    let top = path.split(separator: "/").first
    guard top != "views", top != "templates" else { return path }
    return paths.path(of: try paths.source(at: path))
  }

  private func properties(
    _ format: ViewFormat, _ dialect: EnvDialect, _ newPlace: String?
  ) throws(StoreError) -> [ExactString: [UInt8]] {
    var properties = [Property.format: Array(format.rawValue.utf8)]
    if dialect != .portable { properties[Property.dialect] = Array(dialect.rawValue.utf8) }
    if let newPlace { properties[Property.newPlace] = Array(try checkedPlace(newPlace).utf8) }
    return properties
  }

  /// - Throws: `invalidValue` for anything but the folder of a service.
  private func checkedPlace(_ place: String) throws(StoreError) -> String {
    let place = place.hasSuffix("/") ? String(place.dropLast()) : place
    guard case .item(.generic(let service, _))? = try? paths.source(at: place + "/x"),
      paths.path(of: .item(.generic(service: service, account: "x"))) == place + "/x"
    else { throw .invalidValue(reason: "it is `keychain/generic/SERVICE`, the folder for new items") }
    return place
  }
}

extension SealedDocument {
  /// The properties that are not computed.
  var ownProperties: [ExactString: [UInt8]] {
    properties.filter { !$0.key.string.hasPrefix(Self.derived) }
  }
}

/// A secret that more than one may hold.
final class HeldSecret: Sendable {
  let bytes: SecretBytes

  init(_ bytes: consuming SecretBytes) { self.bytes = bytes }

  func copy() throws(StoreError) -> SecretBytes { try .copy(of: bytes) }
}

extension SecretBytes {
  static func copy(of other: borrowing SecretBytes) throws(StoreError) -> SecretBytes {
    do { return try SecretBytes(copying: other) } catch { throw .outOfMemory }
  }
}
