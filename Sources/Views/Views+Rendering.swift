public import Model
import Platform
public import SecretMemory
public import Store
import ViewFormats

extension Views {
  /// Before a view is opened: the permission for every item in it.
  ///
  /// To write it, what is missing is no obstacle: the file that is written makes it again, or leaves it out.
  ///
  /// - Throws: `missingPart` for reading where an item or a setting is missing, `locked`, `accessDenied` where the rules of one keep the
  ///   caller out, `readOnly` for writing a view that is made from a template.
  public func permission(
    toOpen view: View, writing: Bool, by caller: Caller
  ) throws(StoreError) -> Permission {
    if writing { try requireWritable(view) }
    let permissions = try whileUnchanged(view) { (view) throws(StoreError) in
      try self.permissions(toOpen: view, writing: writing, by: caller)
    }
    return Permission(joining: permissions)
  }

  private func permissions(
    toOpen view: View, writing: Bool, by caller: Caller
  ) throws(StoreError) -> [Permission] {
    var permissions: [Permission] = []
    for path in view.references {
      guard let item = try item(at: path) else {
        if !writing, try state(at: path) == nil { throw .missing(path, in: view) }
        continue
      }
      permissions.append(
        try keychain.permission(
          for: item, to: writing ? .readWrite : .read, path: path, through: view.document, by: caller))
    }
    return permissions
  }

  /// - Throws: `readOnly`, and what the keychain says.
  public func requireWritable(_ view: View) throws(StoreError) {
    guard view.format.isWritable else {
      throw .readOnly(
        reason: "it is made from templates/\(view.name.string); write that, or the items themselves")
    }
    try keychain.requireWritable()
  }

  /// The file of a view, with all values of one moment.
  ///
  /// - Throws: `missingPart` where an item or a setting is missing, `locked`, `accessDenied`, `notRepresentable` for a value that
  ///   the dialect can't carry, `loop`, `tooLarge`, `outOfMemory`, `system` with EAGAIN where the values change all the time.
  public func render(_ view: View, _ permit: Permit?) throws(StoreError) -> SecretBytes {
    try whileUnchanged(view) { (view) throws(StoreError) in try renderOnce(view, permit) }
  }

  private func renderOnce(_ view: View, _ permit: Permit?) throws(StoreError) -> SecretBytes {
    let template = try template(of: view)
    for _ in 0..<Self.mostAttempts {
      let basis = try basis(of: view)
      let bytes = try rendered(template, of: view, permit)
      // A value is stored before its item shows that, so the items alone don't tell of a change in between. Where all values are the
      // same in two readings one after the other, all of them were stored at the moment between the two.
      let isOfOneMoment = try rendered(template, of: view, permit) == bytes
      guard isOfOneMoment, try self.basis(of: view) == basis else { continue }
      note(bytes.count, basis, of: view)
      return bytes
    }
    throw .system(.EAGAIN, operation: "reading all values of one moment")
  }

  private func rendered(
    _ template: ViewTemplate, of view: View, _ permit: Permit?
  ) throws(StoreError) -> SecretBytes {
    var failure: StoreError?
    do throws(ViewError) {
      return try template.render { (slot, body) throws(ViewError) in
        try lend(slot, &failure, body) { (path) throws(StoreError) in
          do throws(StoreError) { return try value(at: path, permit) } catch {
            throw error == .notFound ? .missing(path, in: view) : error
          }
        }
      }
    } catch { throw StoreError(error, after: failure) }
  }

  /// Lends the value of a slot, and keeps why that was not possible.
  func lend(
    _ slot: ViewSlot, _ failure: inout StoreError?, _ body: (Span<UInt8>) throws(ViewError) -> Void,
    value: (String) throws(StoreError) -> SecretBytes
  ) throws(ViewError) {
    let bytes: SecretBytes
    do throws(StoreError) { bytes = try value(slot.reference) } catch {
      failure = error
      throw ViewError(error, entry: slot.name)
    }
    try body(bytes.span)
  }

  /// The present value at a path. - Throws: `notFound`, `locked`, `accessDenied`, `outOfMemory`.
  func value(at path: String, _ permit: Permit?) throws(StoreError) -> SecretBytes {
    switch try paths.source(at: path) {
    case .item(let identity):
      guard let item = try keychain.item(with: identity) else { throw .notFound }
      return try keychain.secret(of: item, permit?[item.id])
    case .setting(let suite, let key): return try text(ofSetting: key, in: suite)
    }
  }

  /// The content of a setting's file, without the line feed that ends it.
  func text(ofSetting key: ExactString, in suite: ExactString) throws(StoreError) -> SecretBytes {
    guard let value = try settings.suite(suite).fetch()?.entries[key]?.value else { throw .notFound }
    var content = try settings.codec.content(of: value)
    if value.type != .data, content.last == 0x0A { _ = content.popLast() }
    do { return try SecretBytes(copying: content.span) } catch { throw .outOfMemory }
  }
}

extension StoreError {
  /// Of a view that can't be opened as it is.
  fileprivate static func missing(_ path: String, in view: View) -> StoreError {
    .missingPart(
      reason: "it refers to \(path), which is not there; "
        + Views.remedy(missing: path, in: view))
  }
}

extension Views {
  /// The ways to mend a view that refers to what is not there, as a clause.
  static func remedy(missing path: String, in view: View) -> String {
    let quoted = path.quotedForShell
    let way =
      view.isTemplate
      ? "edit templates/\(view.name.string)"
      : "write the whole file, without it or with a value for it (`keyhole view \(view.name.string.quotedForShell)` shows the rest)"
    return
      "`keyhole undo \(quoted)` brings back what was removed, `keyhole set \(quoted)` makes it again; or \(way)"
  }

  func isMissing(_ path: String) -> Bool {
    do { return try state(at: path) == nil } catch { return false }
  }

  /// The references of a view to what is not there.
  public func missingReferences(of view: View) throws(StoreError) -> [String] {
    try whileUnchanged(view) { (view) throws(StoreError) in
      var missing: [String] = []
      for path in view.references where try state(at: path) == nil { missing.append(path) }
      return missing
    }
  }
}
