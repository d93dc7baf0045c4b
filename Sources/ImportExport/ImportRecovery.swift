import Formats
public import Model
public import Store
import Tree

/// Takes back what an import that was killed has left half done.
public enum ImportRecovery {
  /// The result of a recovery.
  public enum Outcome: Sendable {
    /// No import was cut short.
    case nothing
    /// One was, and its changes are gone, but for these items, which hold what it brought.
    case takenBack(replaced: [String])
    /// One was cut short after its last change: it is complete.
    case finished
    /// It has to wait: the keychain is locked, or the disk is full.
    case waiting(StoreError)
  }

  /// Whether there is something to recover: one system call.
  public static func isNeeded(state folder: String) -> Bool { ImportJournalFile.exists(in: folder) }

  /// The file that says what has to be taken back. Where it is moved away, what the import has changed stays.
  public static func journal(state folder: String) -> String { ImportJournalFile.path(folder) }

  /// `keychain` is asked for only if items were part of the import.
  public static func run(
    state folder: String, settings: SettingsStore, keychain: () throws -> KeychainStore?
  ) -> Outcome {
    do throws(StoreError) {
      // An import that is running holds the lock.
      guard isNeeded(state: folder), let file = try ImportJournalFile(in: folder) else { return .nothing }
      guard let journal = try file.read(settings.engine.propertyLists) else { return .nothing }
      let store = try journal.hasItems ? opened(keychain) : nil
      // A mount's process may be at it still, for the import that has ended.
      if journal.mark != nil { try store?.finishBatches() }
      if try journal.isCommitted(in: store) {
        file.remove()
        return .finished
      }
      try journal.takeBack(settings, store)
      file.remove()
      return .takenBack(replaced: journal.mark == nil ? journal.replacedItems : [])
    } catch {
      return .waiting(error)
    }
  }

  private static func opened(_ keychain: () throws -> KeychainStore?) throws(StoreError) -> KeychainStore {
    guard let store = (try? keychain()) ?? nil else {
      throw .unreachable(reason: "the keychain of the import can't be opened")
    }
    return store
  }
}

extension ImportJournal {
  var hasItems: Bool { !newItems.isEmpty || !replacedItems.isEmpty }

  /// Whether the one transaction with all items has taken place, which is an import's last change.
  func isCommitted(in keychain: KeychainStore?) throws(StoreError) -> Bool {
    guard let mark, let keychain else { return false }
    let paths = Set(newItems + replacedItems)
    return try keychain.read { index in
      index.all.contains { $0.modified.nanoseconds == mark && paths.contains(TreePaths.path($0.identity)) }
    }
  }

  /// Puts suites back as they were, but for what others changed since, and removes new items.
  func takeBack(_ settings: SettingsStore, _ keychain: KeychainStore?) throws(StoreError) {
    for suite in suites { try suite.takeBack(settings) }
    guard mark == nil, let keychain else { return }
    let paths = Set(newItems)
    let made = try keychain.read { index in
      index.all.filter { $0.created.seconds >= began && paths.contains(TreePaths.path($0.identity)) }
    }
    if !made.isEmpty { try keychain.remove(made.map(\.id)) }
  }
}

extension ImportJournal.Suite {
  func takeBack(_ settings: SettingsStore) throws(StoreError) {
    guard let store = try settings.existingSuite(name) else { return }
    var isEmpty = false
    try store.update { (contents) throws(StoreError) in
      for key in keys where contents.settings[key.name]?.value == key.after {
        contents.settings[key.name] = key.before.map { Setting($0) }
      }
      isEmpty = contents.settings.isEmpty
    }
    if isEmpty, !wasThere { try settings.removeSuite(name) }
  }
}
