import Crypto
import GRDB
import Model
import Platform
import SecretMemory
import Store
import Synchronization
import VaultDatabase
import VaultRecords

/// A vault as one process has it: its file, and since the first unlock a session. Used by one thread at a time.
final class LockableVault {
  private(set) var file: VaultFile
  /// nil: never unlocked, or another process has made new keys since.
  private(set) var session: Session?
  private let state: LockState
  /// How a session begins.
  private let reading: VaultReading
  private let many: UInt64
  let history: HistorySettings
  /// Why the vault that took the place of the open one can't be used; nil: none did, or it is open.
  private var failure: StoreError?
  /// `lock` was called, and `unlock` was not since: a vault that opens by itself is locked then.
  private var isLockWanted = false

  init(
    _ file: VaultFile, _ state: LockState, _ reading: VaultReading, many: UInt64, _ history: HistorySettings
  ) {
    (self.file, self.state, self.reading, self.many) = (file, state, reading, many)
    self.history = history
  }

  /// The session.
  ///
  /// - Throws: `locked` for a vault that was never unlocked, and for one of which another process has changed the
  ///   passphrase.
  func opened() throws(StoreError) -> Session {
    guard let session else { throw failure ?? .locked }
    // First what costs no call of the system.
    let fits = Result { () throws(StoreError) in try session.fitsVault() }
    if case .success(true) = fits { return session }
    // A database that has left its path is kept as it is.
    guard file.connection.displacement == nil, try !fits.get() else { return session }
    return try reopened()
  }

  /// Runs `body` with the session. Where another process makes new keys between two transactions, `body` fails without
  /// an effect, and runs again with these.
  ///
  /// - Throws: what `opened` and `body` throw.
  func withSession<Result: ~Copyable>(
    _ body: (Session) throws(StoreError) -> Result
  ) throws(StoreError) -> Result {
    defer { state.areRulesMissing = session?.areRulesMissing ?? false }
    for _ in 0..<Self.attempts {
      if let result = try attempt(body) { return result }
    }
    throw .interrupted
  }

  /// Each takes a change of the vault's keys by another process.
  private static let attempts = 10

  /// nil: another process has made new keys meanwhile.
  private func attempt<Result: ~Copyable>(
    _ body: (Session) throws(StoreError) -> Result
  ) throws(StoreError) -> Result? {
    do throws(StoreError) {
      return try body(opened())
    } catch {
      try rethrowUnlessRekeyed(error)
      return nil
    }
  }

  /// Returns where the keys are no longer those of the vault. A file that has left its path is kept as it is.
  private func rethrowUnlessRekeyed(_ error: StoreError) throws(StoreError) {
    if error == .interrupted { return }
    guard let session, file.connection.displacement == nil, (try? session.fitsVault()) == false else {
      throw error
    }
  }

  func unlock(_ opened: OpenedSlot) throws(StoreError) {
    if let session, try session.fitsVault() {
      try session.unlock(opened.keys)
    } else {
      if let failure { throw failure }
      try replaceSession(opened)
    }
    isLockWanted = false
    state.value = .open
  }

  func lock() throws(StoreError) {
    isLockWanted = true
    guard let session else { return }
    state.value = .locked
    try session.lock()
  }

  /// Another process has made new keys; where the key file is all that they take, the vault opens again, locked where this
  /// one was.
  private func reopened() throws(StoreError) -> Session {
    let slots = try file.slots()
    guard !slots.contains(where: \.takesPassphrase) else {
      session = nil
      state.value = .sealed
      throw .locked
    }
    // Until then the earlier session stays, so that the next call tries again where this one fails.
    let opened = try SlotOpener(file, Self.noPassphrase()).open(slots)
    try replaceSession(file.fitting(opened))
    state.value = .open
    // Its error means that what outlasts a lock can't be read; the vault is locked all the same.
    if isLockWanted { try? lock() }
    guard let session else { throw .locked }
    return session
  }

  private func replaceSession(_ opened: OpenedSlot) throws(StoreError) {
    let next = try Session(file, opened, reading, many: many, history)
    next.isNews = hadSession
    hadSession = true
    session = next
  }

  private var hadSession = false

  /// Wipes the keys and closes the file. Nothing can be read afterwards.
  func close() {
    session = nil
    file.connection.finish()
    try? file.connection.close()
  }

  static func noPassphrase() throws(StoreError) -> SecretBytes {
    do { return try SecretBytes() } catch { throw .outOfMemory }
  }
}

/// The states of the lock and of the rules, for threads that must not wait for the vault.
final class LockState: Sendable {
  private let state = Mutex(KeychainLock.sealed)
  private let rules = Atomic(false)

  /// As `Session.areRulesMissing`.
  var areRulesMissing: Bool {
    get { rules.load(ordering: .acquiring) }
    set { rules.store(newValue, ordering: .releasing) }
  }

  var value: KeychainLock {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
  }
}

extension LockableVault {
  /// Puts a new slot in the place of those that were there when the change began, with a new master key and new class
  /// keys: all or nothing.
  ///
  /// - Throws: `interrupted` where another process has changed the slots meanwhile.
  func rekey(
    _ old: [KeySlot], to new: MasterKeys, _ change: SlotChange,
    _ progress: VaultUpgrade.Progress = { _, _ in }
  ) throws(StoreError) -> RewritingSummary {
    let summary = try opened().rekey(old, to: new, change, progress)
    // The log and its memory would keep old seals until they are written over.
    file.connection.checkpoint()
    try replaceSession(OpenedSlot(slot: change.slot.id, keys: new))
    isLockWanted = false
    state.value = .open
    return summary
  }
}

extension LockableVault {
  /// Opens what has the vault's path now, where that is another file than the open one: unlocked where its key file is
  /// all it takes, and locked where the other one was.
  ///
  /// As long as there is none at the path, the open one is kept, so that it can still be read.
  ///
  /// - Returns: Whether something else than a commit has written to the open one.
  func reopenIfReplaced() -> Bool {
    // The one that was to take its place could not be opened.
    if file.connection.isClosed {
      replace()
      return false
    }
    let isTouched: Bool
    switch file.connection.place {
    case .displaced(by: _?, _):
      replace()
      return false
    case .displaced(by: nil, _): isTouched = false
    case .touched: isTouched = true
    case .asLeft: isTouched = false
    }
    reopenIfComplete()
    return isTouched
  }

  private func replace() {
    do throws(StoreError) {
      try DatabaseHeader.check(file.directory)
      // Before the other one is opened: the two would share the file of SQLite's shared memory.
      try? file.connection.close()
      (session, failure) = (nil, nil)
      file = try VaultFile(replacing: file.directory)
      if try !file.slots().contains(where: \.takesPassphrase) {
        _ = try reopened()
      }
    } catch {
      failure = error
    }
    if session == nil { state.value = .sealed }
  }

  /// Opens a vault that could not be opened when it took the place of the other one: its key file may have come later, as
  /// where a folder is copied.
  private func reopenIfComplete() {
    guard failure != nil, session == nil, file.connection.displacement == nil, let slots = try? file.slots()
    else { return }
    // One with a passphrase waits for `unlock`.
    if slots.contains(where: \.takesPassphrase) { return failure = nil }
    do throws(StoreError) {
      _ = try reopened()
      failure = nil
    } catch {
      failure = error
    }
  }

  /// Why nothing can be stored now.
  ///
  /// - Throws: `unreachable` for a vault that was removed or replaced, `readOnly`, `system` for a disk that is gone.
  func requireWritable() throws(StoreError) {
    if let failure { throw failure }
    if let displacement = file.connection.displacement { throw .unreachable(reason: displacement) }
    if let reason = session?.readOnlyReason ?? file.directory.readOnlyReason {
      throw .readOnly(reason: reason)
    }
    if let refusal = DiskProbe.refusal(of: file.directory.probedFolder) { throw refusal }
  }

  func problems() -> [Problem] {
    let subject = file.directory.database
    var problems: [Problem] = []
    if let displacement = file.connection.displacement, failure == nil {
      problems.append(
        Problem(
          subject: subject, reason: displacement,
          remedy: "until then nothing can be stored, and what shows is the old one"))
    }
    if let failure {
      problems.append(
        Problem(
          subject: subject, reason: "another vault took its place, which can't be opened: " + failure.message,
          remedy: "put back the vault that was there, or a backup of it"))
    }
    let slots = failure == nil ? try? file.slots() : nil
    return problems + file.directory.problems(slots ?? [])
      + (session?.problems() ?? [])
  }
}

extension Session {
  fileprivate func rekey(
    _ old: [KeySlot], to master: MasterKeys, _ change: SlotChange, _ progress: VaultUpgrade.Progress
  ) throws(StoreError) -> RewritingSummary {
    try judgeIfTouched()
    let (manifest, summary) = try connection.write { database in
      let manifest = try trustedManifest(database)
      // Rows that are sealed with the new keys count as Keyhole's own.
      try DigestTable(database: database, keys: keys).requireWhole(manifest)
      guard try KeySlot.fetchAll(database, header.format) == old else { throw StoreError.interrupted }
      let new = try VaultKeys(master, header)
      var rewriting = try Rewriting(database, directory, keys, to: master, new, manifest)
      try rewriting.run(progress)
      // They are those of the manifest, as `trustedManifest` found: no other program's public key gets the master key.
      try KeySlot.replaceAll(with: change.slots(after: old, master, header), database, header.format)
      var next = rewriting.manifest
      try next.store(database, new)
      return (next, rewriting.summary)
    }
    advanceAnchor(manifest)
    return summary
  }
}
