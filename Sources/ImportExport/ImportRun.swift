import Formats
public import Model
import SecretMemory
public import Store
import Tree

/// Does what a plan says, all of it or nothing.
///
/// Suites change one after the other under a journal, then the items: in one transaction where the keychain has them,
/// else one at a time. What is interrupted, the next command takes back (`ImportRecovery`).
public struct ImportRun {
  private let settings: SettingsStore
  private let keychain: KeychainStore?
  private let stateFolder: String
  private let ask: Ask

  /// Gives the permission to replace an item, which may ask before it is read or changed; without a present one, to make a
  /// new one, which may get a password of its own.
  public typealias Ask = (
    _ present: Item?, _ new: Item, _ path: String
  ) throws(StoreError) -> Permission

  /// - Parameters:
  ///   - settings: where settings are stored.
  ///   - keychain: where items are stored; nil: an import with items fails.
  ///   - stateFolder: where the journal is kept meanwhile.
  ///   - ask: gives the permission to change an item.
  public init(
    settings: SettingsStore, keychain: KeychainStore?, stateFolder: String, ask: @escaping Ask
  ) {
    self.settings = settings
    self.keychain = keychain
    self.stateFolder = stateFolder
    self.ask = ask
  }

  /// Whether a plan's items come one at a time.
  public func isItemByItem(_ plan: ImportPlan) -> Bool {
    plan.changedItems.count > 1 && !canChangeTogether(plan)
  }

  private func canChangeTogether(_ plan: ImportPlan) -> Bool {
    guard let keychain, keychain.isTransactional else { return false }
    return plan.changedItems.allSatisfy { !$0.needsPassword }
  }

  /// `advance` is called after each thing that was written.
  ///
  /// - Throws: `ImportExportError`, after what was done before is undone; it says where that was not possible.
  public func apply(_ plan: ImportPlan, _ advance: () -> Void) throws(ImportExportError) {
    let file = try lockedJournal()
    var journal = try journal(of: plan)
    journal.mark = canChangeTogether(plan) ? UInt32.random(in: 1..<1_000_000_000) : nil
    let permits = try journal.mark == nil ? [:] : permits(for: plan)
    do throws(StoreError) {
      if journal.isNeeded { try file.write(journal, settings.engine.propertyLists) }
    } catch {
      throw ImportExportError(unchanged: stateFolder, error)
    }
    do throws(ImportExportError) {
      for suite in journal.suites { try write(suite, advance) }
      try writeItems(plan, journal.mark, permits, advance)
      if journal.isNeeded { file.remove() }
    } catch {
      try undo(journal, file, after: error)
    }
  }

  private func lockedJournal() throws(ImportExportError) -> ImportJournalFile {
    do throws(StoreError) {
      guard let file = try ImportJournalFile(in: stateFolder) else {
        throw StoreError.unreachable(reason: "another import is running")
      }
      guard try file.read(settings.engine.propertyLists) == nil else {
        throw StoreError.unreachable(
          reason:
            "an import that was cut short has to be taken back first; `keyhole doctor` says why it is not")
      }
      return file
    } catch {
      throw ImportExportError(stateFolder, error)
    }
  }

  private func journal(of plan: ImportPlan) throws(ImportExportError) -> ImportJournal {
    var journal = ImportJournal(began: Timestamp.now.seconds)
    var places: [ExactString: Int] = [:]
    var suites = PresentSuites(settings)
    for (entry, step) in plan.settings where step.isChange {
      let present = try present(entry.suite, &suites)
      if places[entry.suite] == nil {
        places[entry.suite] = journal.suites.count
        journal.suites.append(
          ImportJournal.Suite(name: entry.suite, wasThere: present != nil, keys: []))
      }
      let before = present?.entries[entry.key]?.value
      let key = ImportJournal.Key(name: entry.key, before: before, after: entry.value)
      if let place = places[entry.suite] { journal.suites[place].keys.append(key) }
    }
    for item in plan.changedItems {
      if item.present == nil {
        journal.newItems.append(item.path)
      } else {
        journal.replacedItems.append(item.path)
      }
    }
    return journal
  }

  private func present(
    _ suite: ExactString, _ suites: inout PresentSuites
  ) throws(ImportExportError) -> SuiteSnapshot? {
    do throws(StoreError) { return try suites.snapshot(of: suite) } catch {
      throw ImportExportError("defaults/\(PathName(suite).string)", error)
    }
  }

  /// - Throws: the error for people, after everything is as it was. Nothing, if the last change took place although its
  ///   answer did not come.
  private func undo(
    _ journal: ImportJournal, _ file: borrowing ImportJournalFile, after error: ImportExportError
  ) throws(ImportExportError) {
    do throws(StoreError) {
      if try isCommitted(journal) { return file.remove() }
      try journal.takeBack(settings, keychain)
      file.remove()
    } catch {
      throw unfinished(journal, error)
    }
    throw error.adding("; nothing was imported")
  }

  /// Another process that makes the changes may have made them and not be there any more to say so.
  private func isCommitted(_ journal: ImportJournal) throws(StoreError) -> Bool {
    guard journal.mark != nil, journal.hasItems, let keychain, keychain.mayBlock else { return false }
    try keychain.finishBatches()
    return try journal.isCommitted(in: keychain)
  }

  private func unfinished(_ journal: ImportJournal, _ error: StoreError) -> ImportExportError {
    guard journal.mark != nil, journal.hasItems, keychain?.mayBlock == true else {
      return ImportExportError(
        nil, "\(error.message); part of it is imported, and the next command takes it back as soon as it can")
    }
    let rest =
      journal.isNeeded
      ? "the next command finishes it or takes it back as soon as the keychain is open again"
      : "all of it is imported or nothing; `keyhole import -n` shows which"
    return ImportExportError(nil, "\(error.message) while the items were stored; \(rest)")
  }

  // MARK: Suites

  /// A suite changes in one step.
  private func write(_ suite: ImportJournal.Suite, _ advance: () -> Void) throws(ImportExportError) {
    do throws(StoreError) {
      if !suite.wasThere { try settings.createSuite(suite.name) }
      try settings.suite(suite.name).update { (contents) throws(StoreError) in
        for key in suite.keys { contents.settings[key.name] = Setting(key.after) }
      }
    } catch {
      throw ImportExportError("defaults/\(PathName(suite.name).string)", error)
    }
    for _ in suite.keys { advance() }
  }
}

// MARK: Items

extension ImportRun {
  /// The permissions to replace items, for which the user is asked before anything is changed. Another process that makes
  /// the changes asks by itself.
  private func permits(for plan: ImportPlan) throws(ImportExportError) -> [ItemID: Permit] {
    var (ids, permissions): ([ItemID], [Permission]) = ([], [])
    for item in plan.changedItems {
      guard let present = item.present else { continue }
      do throws(StoreError) {
        permissions.append(try ask(present, item.replaced, item.path))
        ids.append(present.id)
      } catch {
        throw ImportExportError(unchanged: item.path, error)
      }
    }
    do throws(StoreError) {
      let permits = try PermissionGroup(permissions).fetch()
      return Dictionary(zip(ids, permits)) { first, _ in first }
    } catch {
      throw ImportExportError(unchanged: nil, error)
    }
  }

  private func writeItems(
    _ plan: ImportPlan, _ mark: UInt32?, _ permits: [ItemID: Permit], _ advance: () -> Void
  ) throws(ImportExportError) {
    let items = plan.changedItems
    guard let keychain, !items.isEmpty else { return }
    guard let mark else { return try writeOneByOne(items, keychain, advance) }
    var (changes, secrets): ([ItemChange], [(path: String, secret: SecretSlice, isItem: Bool)]) = ([], [])
    for item in items {
      changes.append(item.change(mark: mark))
      secrets.append((item.path, item.secret, true))
      guard let uri = item.otpauth else { continue }
      changes.append(.setOtpauth(item.item.identity, modified: item.item.modified))
      secrets.append((item.path, uri, false))
    }
    var current = 0
    do throws(StoreError) {
      try keychain.apply(changes, permits) { (index) throws(StoreError) in
        current = index
        if secrets[index].isItem { advance() }
        return try ImportPlan.secret(secrets[index].secret)
      }
    } catch {
      // Another process does not say which item it is.
      throw ImportExportError(keychain.mayBlock ? nil : secrets[current].path, error)
    }
  }

  /// New items first: those can be taken back without their old secrets.
  private func writeOneByOne(
    _ items: [ImportPlan.PlannedItem], _ keychain: KeychainStore, _ advance: () -> Void
  ) throws(ImportExportError) {
    var done: [WrittenItem] = []
    let ordered = items.filter { $0.present == nil } + items.filter { $0.present != nil }
    for item in ordered {
      do throws(StoreError) {
        done.append(try write(item, keychain))
      } catch {
        for written in done.reversed() { try? written.undo(keychain) }
        throw ImportExportError(item.path, error)
      }
      advance()
    }
  }

  private func write(
    _ planned: ImportPlan.PlannedItem, _ keychain: KeychainStore
  ) throws(StoreError) -> WrittenItem {
    let secret = try ImportPlan.secret(planned.secret)
    let given = try ask(planned.present, planned.replaced, planned.path).fetch()
    let uri = HeldSecret(try ImportPlan.secret(planned.otpauth ?? planned.secret))
    guard let present = planned.present else {
      return .added(try keychain.add(planned.item, secret: secret, otpauth: uri.bytes, given).id)
    }
    let old = HeldSecret(try keychain.secret(of: present.id, given))
    let isURIReplaced = planned.otpauth != nil
    let oldURI =
      try isURIReplaced && present.otpauth != nil
      ? HeldSecret(keychain.otpauth(of: present, given)) : nil
    let written = WrittenItem.replaced(present, old, isURIReplaced ? .some(oldURI) : .none, given)
    do throws(StoreError) {
      if isURIReplaced { try setOtpauth(of: present.id, to: uri, planned.item.modified, keychain, given) }
      try keychain.rewrite(present.id, readingSecret: false, given) { (stored, bytes) throws(StoreError) in
        planned.replace(&stored)
        bytes = try HeldSecret.copy(secret)
      }
    } catch {
      if isURIReplaced { try? written.undo(keychain) }
      throw error
    }
    return written
  }

  private func setOtpauth(
    of item: ItemID, to uri: HeldSecret, _ modified: Timestamp, _ keychain: KeychainStore,
    _ permit: Permit?
  ) throws(StoreError) {
    try keychain.rewriteOtpauth(of: item, readingSecret: false, permit) {
      (further, bytes) throws(StoreError) in
      further = FurtherSecret(modified: modified)
      bytes = try HeldSecret.copy(uri.bytes)
    }
  }
}

/// A step that has to be undone where a later item can't be written.
private enum WrittenItem {
  case added(ItemID)
  /// `uri`: what the `otpauth:` URI was; nil: it was not replaced.
  case replaced(Item, HeldSecret, _ uri: HeldSecret??, Permit?)

  func undo(_ keychain: KeychainStore) throws(StoreError) {
    switch self {
    case .added(let id): try keychain.remove([id])
    case .replaced(let item, let secret, let uri, let permit):
      if let uri {
        try keychain.rewriteOtpauth(of: item.id, readingSecret: false, permit) {
          (further, bytes) throws(StoreError) in
          further = item.otpauth
          if let uri { bytes = try HeldSecret.copy(uri.bytes) }
        }
      }
      try keychain.rewrite(item.id, readingSecret: false, permit) { (stored, bytes) throws(StoreError) in
        stored = item
        bytes = try HeldSecret.copy(secret.bytes)
      }
    }
  }
}

extension ImportPlan.PlannedItem {
  /// It has a password of its own, or will have one: it is asked for one item at a time.
  fileprivate var needsPassword: Bool {
    item.access.needsPassword || replaced.access.needsPassword || present?.access.needsPassword ?? false
  }

  /// The item as it will be.
  fileprivate var replaced: Item {
    guard var stored = present else { return item }
    replace(&stored)
    // Only what is written is asked about.
    stored.otpauth = otpauth == nil ? nil : FurtherSecret(modified: item.modified)
    return stored
  }

  /// The item stays the one it was: its date of creation and what the import does not name.
  fileprivate func replace(_ stored: inout Item) {
    for attribute in attributes where attribute.name != "user.keyhole.created" {
      // The plan has set the same on an item of this identity.
      try? ItemAttributes.set(attribute.name, to: attribute.value, on: &stored, isImported: true)
    }
    stored.modified = item.modified
  }

  fileprivate func change(mark: UInt32) -> ItemChange {
    guard let present else {
      var item = item
      item.modified.nanoseconds = mark
      return .add(item)
    }
    return .rewrite(present.id) { (stored) throws(StoreError) in
      replace(&stored)
      stored.modified.nanoseconds = mark
    }
  }
}

/// A secret that closures share.
private final class HeldSecret: Sendable {
  let bytes: SecretBytes

  init(_ bytes: consuming SecretBytes) {
    self.bytes = bytes
  }

  static func copy(_ bytes: borrowing SecretBytes) throws(StoreError) -> SecretBytes {
    do throws(SecretMemoryError) { return try SecretBytes(copying: bytes) } catch { throw .outOfMemory }
  }
}
