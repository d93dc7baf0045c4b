public import Model
public import SecretMemory
public import Store
import Synchronization
import ViewFormats

extension Views {
  /// Takes the file of a view as a program has written it: changed values become those of their items, new entries become items
  /// in the view's `newPlace`, and entries that are gone leave the view, while their items stay. A new entry never replaces what is
  /// there under its name; one with the same value is taken into the view. All in one transaction of the vault; nothing is stored
  /// where the file is as it was.
  ///
  /// Only values that differ from those of `base`, the file as the program has read it, are written: what others have changed
  /// since stays. nil: the present values.
  /// - Throws: `invalidValue` with the line for what the format does not parse, and for a value in a comment, a key or a section's
  ///   name; `notPermitted` for a new entry whose item is there with another value; `accessDenied`, `locked`, `tooLarge`,
  ///   `readOnly`, `noSpace`. The content stays as it was.
  public func store(
    _ content: consuming SecretBytes, as name: ExactString, since base: consuming SecretBytes?,
    _ permit: Permit?, modified: Timestamp? = nil
  ) throws(StoreError) {
    let written = HeldSecret(content)
    let before: HeldSecret?
    if let base { before = HeldSecret(base) } else { before = nil }
    try change(name) { (view) throws(StoreError) in
      try store(written, view, since: before, permit, modified ?? .now)
    }
  }

  /// Appends to the file of a view as it is at this moment, in the order of the calls, and takes it then.
  ///
  /// `permit`: for reading and writing it. `limit`: of the file, in bytes. - Throws: as `store`; `tooLarge`.
  public func append(
    _ content: consuming SecretBytes, to name: ExactString, _ permit: Permit?, limit: Int,
    modified: Timestamp? = nil
  ) throws(StoreError) {
    let added = HeldSecret(content)
    try change(name) { (view) throws(StoreError) in
      let present = HeldSecret(try render(view, permit))
      guard present.bytes.count + added.bytes.count <= limit else { throw .tooLarge(limit: limit) }
      var whole = try present.copy()
      do throws(SecretMemoryError) {
        try added.bytes.withSpan(0..<added.bytes.count) { (bytes) throws(SecretMemoryError) in
          try whole.append(bytes)
        }
      } catch { throw .outOfMemory }
      try store(HeldSecret(whole), view, since: present, permit, modified ?? .now)
    }
  }

  /// Runs a change of a view while no other thread changes one; again where the view has changed meanwhile: by another process, or
  /// because it follows the new name of an item.
  private func change(_ name: ExactString, _ body: (View) throws(StoreError) -> Void) throws(StoreError) {
    try changing.withLock { _ throws(StoreError) in
      try bringBack(name)
      for attempt in 1... {
        let view = try existing(name)
        do throws(StoreError) { return try body(view) } catch {
          let present = try existing(name).document
          let isInterrupted = error == .interrupted
          guard isInterrupted || !present.isSameText(as: view.document), attempt < Self.mostAttempts
          else { throw error }
          // The change that came in between may not be known here yet.
          if isInterrupted { try keychain.refresh() }
        }
      }
    }
  }

  private func store(
    _ content: HeldSecret, _ view: View, since base: HeldSecret?, _ permit: Permit?, _ now: Timestamp
  ) throws(StoreError) {
    try requireWritable(view)
    let content = try keepingAdditions(content, view, since: base, permit)
    let (file, merge) = try merge(content, view, since: base, permit)
    guard !merge.isUnchanged else { return }
    let plan = try plan(merge, file, permit, now)
    let text: HeldSecret
    do throws(ViewError) { text = HeldSecret(try merge.template.encoded()) } catch { throw StoreError(error) }
    let document = try documentChange(view, merge.template, content.bytes.count, plan)
    let id = view.document.id
    known.withLock { $0[id, default: Known()].writes += 1 }
    defer { known.withLock { $0[id]?.writes -= 1 } }
    try perform(plan, document, text, permit)
    // The document's change reports it, and its items' changes are not to do that again.
    guard let stored = try? self.view(view.name), let basis = try? basis(of: stored) else { return }
    known.withLock { $0[id, default: Known()].announced = basis }
  }

  /// The file with the entries that others have added since its writer has opened the view: a writer can't have taken them out.
  private func keepingAdditions(
    _ content: HeldSecret, _ view: View, since base: HeldSecret?, _ permit: Permit?
  ) throws(StoreError) -> HeldSecret {
    // Of a view that can't be rendered, nothing can be kept.
    guard let base, let present = try? render(view, permit) else { return content }
    if present == base.bytes { return content }
    do throws(ViewError) {
      let file = try ViewDocument(parsing: content.viewCopy(), as: view.format, view.dialect)
      let before = try ViewDocument(parsing: base.viewCopy(), as: view.format, view.dialect)
      let now = try ViewDocument(parsing: present, as: view.format, view.dialect)
      guard let text = try file.keepingAdditions(of: now, since: before) else { return content }
      return HeldSecret(text)
    } catch { throw StoreError(error.namingOnlyKnown(try template(of: view))) }
  }

  /// The names of what a file would change in a view, without a value; nothing is stored.
  ///
  /// `permit`: for writing the view. - Throws: as `store`.
  public func preview(
    _ content: consuming SecretBytes, as name: ExactString, _ permit: Permit?
  ) throws(StoreError) -> ViewPreview {
    let view = try existing(name)
    try requireWritable(view)
    let content = HeldSecret(content)
    let merge = try whileUnchanged(view) { (view) throws(StoreError) in
      let (file, merge) = try self.merge(content, view, since: nil, permit)
      // A write that would be refused is refused here.
      _ = try plan(merge, file, permit, .now)
      return merge
    }
    let text = { (name: [String]) in name.joined(separator: " ") }
    return ViewPreview(
      changed: merge.changed.map { text($0.entry.name) }, added: merge.added.map { text($0.entry.name) },
      removed: merge.removed.map { text($0.name) }, isUnchanged: merge.isUnchanged)
  }

  /// The changes of a written file. It stores nothing.
  func merge(
    _ content: HeldSecret, _ view: View, since base: HeldSecret?, _ permit: Permit?
  ) throws(StoreError) -> (ViewDocument, ViewMerge) {
    let template = try template(of: view)
    let place = view.newPlace
    var failure: StoreError?
    do throws(ViewError) {
      let file = try ViewDocument(
        parsing: content.viewCopy(), as: view.format, view.dialect)
      let known = try base.map { (base) throws(ViewError) in
        try KnownValues(ViewDocument(parsing: base.viewCopy(), as: view.format, view.dialect))
      }
      let merge = try file.merge(with: template) { entry in
        reference(forNew: entry.name, in: place)
      } _: { (slot, body) throws(ViewError) in
        if let value = try known?.value(of: slot.name) { return try body(value.span) }
        // Of what is not there the file has the value, or leaves it out.
        guard !isMissing(slot.reference) else { return }
        try lend(slot, &failure, body) { (path) throws(StoreError) in try value(at: path, permit) }
      }
      return (file, merge)
    } catch { throw StoreError(error.namingOnlyKnown(template), after: failure) }
  }

  private func reference(forNew name: [String], in place: String) -> String {
    guard case .item(.generic(let service, _))? = try? paths.source(at: place + "/x") else { return place }
    let account = ExactString(name.joined(separator: "."))
    return paths.path(of: .item(.generic(service: service, account: account)))
  }

  private func value(
    of entry: ViewDocument.Entry, in file: ViewDocument
  ) throws(StoreError) -> SecretBytes {
    do throws(ViewError) { return try file.value(of: entry) } catch { throw StoreError(error) }
  }
}

/// The names of what a file changes in a view.
public struct ViewPreview: Sendable {
  /// Entries with other values.
  public var changed: [String]
  /// Entries that become items.
  public var added: [String]
  /// Entries that leave the view; their items stay.
  public var removed: [String]
  /// Whether the file is as the view is.
  public var isUnchanged: Bool
}

/// The values of a file by their names.
private struct KnownValues {
  let file: ViewDocument
  let entries: [[String]: ViewDocument.Entry]

  init(_ file: ViewDocument) {
    self.file = file
    entries = Dictionary(file.entries.map { ($0.name, $0) }) { first, _ in first }
  }

  func value(of name: [String]) throws(ViewError) -> SecretBytes? {
    guard let entry = entries[name] else { return nil }
    return try file.value(of: entry)
  }
}

extension ViewError {
  /// Without a name that the stored template does not have: of a text that does not parse, it may be a value.
  fileprivate func namingOnlyKnown(_ template: ViewTemplate) -> ViewError {
    guard let entry, line != nil, !template.slots.contains(where: { $0.name == entry }) else { return self }
    return ViewError(errno, line: line, reason)
  }
}

extension StoreError {
  /// Of a new entry of a view, whose name has a value already: another one, or one that the writer may not read.
  fileprivate static func isNoPartOfView(_ path: String) -> StoreError {
    .notPermitted(
      reason: "\(path) is there already, with another value or one that can't be read now, "
        + "and no part of the view; set it to this value first, or remove it")
  }
}

extension HeldSecret {
  fileprivate func viewCopy() throws(ViewError) -> SecretBytes {
    do { return try SecretBytes(copying: bytes) } catch { throw ViewError(error) }
  }
}

/// The changes that a write of a view stores.
private struct WritePlan {
  struct SettingChange {
    var suite: ExactString
    var key: ExactString
    var value: SettingValue
  }

  let now: Timestamp
  var items: [ItemChange] = []
  var secrets: [HeldSecret] = []
  var settings: [SettingChange] = []
  /// The states that the sources will have.
  var states: [String: SourceState] = [:]

  init(_ now: Timestamp) { self.now = now }
}

extension Views {
  private func plan(
    _ merge: ViewMerge, _ file: ViewDocument, _ permit: Permit?, _ now: Timestamp
  ) throws(StoreError) -> WritePlan {
    var plan = WritePlan(now)
    for change in merge.changed {
      try add(change, HeldSecret(try value(of: change.entry, in: file)), to: &plan, permit)
    }
    for change in merge.added {
      let value = HeldSecret(try value(of: change.entry, in: file))
      try add(change, value, isNew: true, to: &plan, permit)
    }
    return plan
  }

  /// Adds the change of one value, unless it is the present one. `isNew`: the entry was not in the view.
  private func add(
    _ change: ViewMerge.Change, _ value: HeldSecret, isNew: Bool = false, to plan: inout WritePlan,
    _ permit: Permit?
  ) throws(StoreError) {
    switch try paths.source(at: change.reference) {
    case .item(let identity):
      let size = value.bytes.count
      guard let item = try keychain.item(with: identity) else {
        var item = Item(id: ItemID(rawValue: ""), identity: identity, created: plan.now, modified: plan.now)
        item.size = size
        plan.items.append(.add(item))
        plan.secrets.append(value)
        return plan.states[change.reference] = SourceState(modified: plan.now, size: size)
      }
      if let present = try? keychain.secret(of: item, permit?[item.id]), present == value.bytes { return }
      guard !isNew else { throw .isNoPartOfView(change.reference) }
      let now = plan.now
      plan.items.append(.rewrite(item.id) { $0.modified = now })
      plan.secrets.append(value)
      plan.states[change.reference] = SourceState(modified: now, size: size)
    case .setting(let suite, let key):
      let bytes = value.bytes.unprotected
      let present = try settings.suite(suite).fetch()?.entries[key]?.value
      let new: SettingValue
      if let type = present?.type {
        new = try settings.codec.value(of: bytes, as: type)
      } else {
        new = settings.codec.inferred(from: bytes)
      }
      guard new != present else { return }
      guard !isNew || present == nil else { throw .isNoPartOfView(change.reference) }
      plan.settings.append(WritePlan.SettingChange(suite: suite, key: key, value: new))
    }
  }

  /// The length is the file's own, unless a setting spells its value differently.
  private func documentChange(
    _ view: View, _ template: ViewTemplate, _ length: Int, _ plan: WritePlan
  ) throws(StoreError) -> DocumentChange {
    var change = DocumentChange(
      of: view.document, name: view.document.name, properties: view.document.ownProperties,
      modified: plan.now)
    let references = Self.bytes(of: template)
    change.properties[Property.references] = references
    guard plan.settings.isEmpty else { return change }
    var states: [SourceState?] = []
    for path in View.lines(ExactString(utf8: references)?.string) {
      if let state = plan.states[path] { states.append(state) } else { states.append(try state(at: path)) }
    }
    change.properties[Property.length] = Array("\(length)".utf8)
    change.properties[Property.basis] = Self.basis(
      modified: plan.now, dialect: change.properties[Property.dialect], states)
    return change
  }

  /// Settings are files of their own: they are changed first, and changed back where the vault refuses the rest.
  private func perform(
    _ plan: WritePlan, _ document: DocumentChange, _ text: HeldSecret, _ permit: Permit?
  ) throws(StoreError) {
    var permits: [ItemID: Permit] = [:]
    for case .rewrite(let id, _) in plan.items { permits[id] = permit?[id] }
    var undone: [(WritePlan.SettingChange, Setting?)] = []
    do throws(StoreError) {
      for change in plan.settings { undone.append((change, try set(change, plan.now))) }
      try keychain.apply(plan.items, permits, keeping: [document], origin: .indirect) {
        (index) throws(StoreError) in
        try index < plan.secrets.count ? plan.secrets[index].copy() : text.copy()
      }
    } catch {
      for (change, before) in undone.reversed() {
        _ = try? settings.suite(change.suite).update(origin: .indirect) { contents in
          // Another program may have changed it since.
          guard contents.settings[change.key]?.value == change.value else { return }
          contents.settings[change.key] = before
        }
      }
      throw error
    }
  }

  /// Returns the setting as it was.
  private func set(_ change: WritePlan.SettingChange, _ now: Timestamp) throws(StoreError) -> Setting? {
    var before: Setting?
    try settings.suite(change.suite).update(origin: .indirect) { contents in
      before = contents.settings[change.key]
      contents.settings[change.key] = Setting(change.value, modified: now)
    }
    return before
  }
}
