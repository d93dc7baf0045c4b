import Crypto
import GRDB
public import Model
import Platform
public import SecretMemory
import Store
import VaultDatabase
public import VaultRecords

/// Brings a vault of Keyhole 0.1 to the present format.
///
/// In one transaction, after a copy was made: a process that is killed leaves the old vault or the new one.
public enum VaultUpgrade {
  /// The policy for a vault that was put back, cut or edited.
  public enum Policy: Sendable {
    case refusesDistrusted
    /// It is taken as it is: ask a person first.
    case acceptsAsItIs
  }

  /// The result of an upgrade.
  public struct Report: Hashable, Sendable {
    /// The path of the copy of the old vault, which opens with the same key file and passphrase as before.
    public let copy: String
    /// The change of the keys, as with a change of the passphrase.
    public let keys: RekeyingReport
  }

  /// Whether the vault in a folder is of an older format; false where there is none.
  ///
  /// - Throws: as `VaultEngine.init`.
  public static func isNeeded(_ directory: String, stateDirectory: String) throws(StoreError) -> Bool {
    let place = try VaultDirectory(directory, state: stateDirectory)
    guard Files.exists(place.database) else { return false }
    return try VaultFile(opening: place).header.format < .newest
  }

  /// Called with the number of items so far, and of all.
  public typealias Progress = (_ done: Int, _ total: Int) -> Void

  /// Upgrades the vault in a folder; nil: it is of the present format already.
  ///
  /// - Throws: `notFound` where there is no vault; `locked`, `rejected`, `accessDenied` as `VaultEngine.unlock`;
  ///   `readOnly` for one that is distrusted; `interrupted` where another process changed it meanwhile; `noSpace`.
  public static func run(
    _ directory: String, stateDirectory: String, _ passphrase: borrowing SecretBytes, _ policy: Policy,
    cost: PassphraseCost = .standard, progress: Progress = { _, _ in }
  ) throws(StoreError) -> Report? {
    try run(VaultDirectory(directory, state: stateDirectory), passphrase, policy, cost, progress)
  }

  static func run(
    _ place: VaultDirectory, _ passphrase: borrowing SecretBytes, _ policy: Policy, _ cost: PassphraseCost,
    _ progress: Progress = { _, _ in }
  ) throws(StoreError) -> Report? {
    guard Files.exists(place.database) else { throw .notFound }
    return try run(VaultFile(opening: place), passphrase, policy, cost, progress)
  }

  static func run(
    _ file: VaultFile, _ passphrase: borrowing SecretBytes, _ policy: Policy, _ cost: PassphraseCost,
    _ progress: Progress = { _, _ in }
  ) throws(StoreError) -> Report? {
    guard file.header.format < .newest else { return nil }
    let slots = try file.slots()
    let opened = try file.fitting(SlotOpener(file, passphrase).open(slots))
    defer { wipeStack() }
    let old = try Session(file, opened)
    if let distrust = old.distrust, policy == .refusesDistrusted {
      throw .readOnly(reason: "the vault can only be read: \(distrust); --accept upgrades it as it is")
    }
    let slot = slots.first { $0.id == opened.slot }
    let copy = try VaultCopy.make(of: file)
    let summary = try Upgrading(file, old, opened.keys, slot).run(passphrase, cost, progress)
    return Report(copy: copy, keys: RekeyingReport(summary))
  }
}

/// One upgrade of format 1.
private struct Upgrading {
  let file: VaultFile
  let old: Session
  let oldKeys: MasterKeys
  /// The slot that opened the vault.
  let slot: KeySlot?
  let header: VaultHeader

  init(_ file: VaultFile, _ old: Session, _ oldKeys: MasterKeys, _ slot: KeySlot?) {
    (self.file, self.old, self.oldKeys, self.slot) = (file, old, oldKeys, slot)
    header = VaultHeader(format: .two, store: file.header.store)
  }

  func run(
    _ passphrase: borrowing SecretBytes, _ cost: PassphraseCost, _ progress: VaultUpgrade.Progress
  ) throws(StoreError) -> RewritingSummary {
    let master = MasterKeys.random(withPasscode: slot?.takesPassphrase ?? false)
    let slot = try newSlot(passphrase, cost, master)
    var anchor = old.anchor
    var first = Manifest()
    if let manifest = old.manifest { first = manifest }
    first.generation = max(first.generation, anchor.generation)
    // Without it the upgraded vault would miss its anchor. One of format 1 will do: the key is the same.
    if anchor.state == nil || anchor.isDamaged { try anchor.advance(to: first.state, first.anchorKey) }
    let (manifest, summary) = try file.connection.write { database in
      guard try Manifest.fetchIfWhole(database, old.keys) == old.manifest else {
        throw StoreError.interrupted
      }
      return try rewrite(database, first, master, slot, progress)
    }
    file.connection.checkpoint()
    try? anchor.advance(to: manifest.state, manifest.anchorKey)
    return summary
  }

  private func rewrite(
    _ database: Database, _ first: Manifest, _ master: MasterKeys, _ slot: KeySlot,
    _ progress: VaultUpgrade.Progress
  ) throws -> (Manifest, RewritingSummary) {
    let scan = try old.items(database).scan()
    var first = first
    first.generation = max(first.generation, scan.lastRevision)
    for table in Self.tables {
      try database.execute(sql: "ALTER TABLE \(table) RENAME TO \(table)\(Statements.replaced)")
    }
    try Schema.createTables(database, header)
    let keys = try VaultKeys(oldKeys, old.header, of: .replaced)
    let new = try VaultKeys(master, header)
    var rewriting = try Rewriting(database, file.directory, keys, to: master, new, first)
    try rewriting.run(progress)
    try slot.insert(database, header.format)
    var manifest = rewriting.manifest
    manifest.devices = [file.directory.machine.device(manifest.anchorKey)]
    try manifest.store(database, new)
    for table in Self.tables { try database.execute(sql: "DROP TABLE \(table)\(Statements.replaced)") }
    return (manifest, rewriting.summary)
  }

  private static let tables = ["vault", "slot", "class_key", "manifest", "item", "secret"]

  private func newSlot(
    _ passphrase: borrowing SecretBytes, _ cost: PassphraseCost, _ master: MasterKeys
  ) throws(StoreError) -> KeySlot {
    do {
      let kind = slot.flatMap { KeySlot.Kind(rawValue: $0.kind) }
      let id = (slot?.id ?? 0) &+ 1
      guard let kind, kind.takesPassphrase else {
        return try KeySlot(id: id, KeyFileSource(bytes: file.directory.fetchKey()), master, header)
      }
      var source = PassphraseSource(
        passphrase: try SecretBytes(copying: passphrase),
        keyFile: try kind == .passphrase ? nil : file.directory.fetchKey())
      source.cost = cost
      return try KeySlot(id: id, source, master, header)
    } catch {
      throw StoreError(vault: error, errno: 0)
    }
  }
}

/// Copies of a vault's database, beside it.
private enum VaultCopy {
  /// Copies the database as it is at this moment, whole or not at all, and on the disk. A file that is there stays.
  ///
  /// - Returns: the path.
  static func make(of file: VaultFile) throws(StoreError) -> String {
    let place = file.directory
    return try place.locked(place.path) { () throws(StoreError) in
      let path = freeName(place)
      let temporary = PrivateFile.temporary(path)
      remove(temporary)
      try PrivateFile.createEmpty(temporary)
      do throws(StoreError) {
        try file.connection.run { try $0.execute(sql: "VACUUM INTO ?", arguments: [temporary]) }
        try finish(temporary)
        try PrivateFile.giveName(path)
      } catch {
        remove(temporary)
        throw error
      }
      return path
    }
  }

  private static func freeName(_ place: VaultDirectory) -> String {
    let name = place.path + "/vault-\(VaultFormat.one.rawValue)"
    guard Files.exists(name + ".db") else { return name + ".db" }
    let number = (2...).first { !Files.exists("\(name)-\($0).db") } ?? 2
    return "\(name)-\(number).db"
  }

  /// As Keyhole 0.1 wants it, and on the disk.
  private static func finish(_ path: String) throws(StoreError) {
    let connection = try Connection(path)
    try connection.run { try $0.execute(sql: "PRAGMA journal_mode = WAL") }
    try connection.close()
    guard let file = try PrivateFile.open(path) else { throw .notFound }
    try StoreError.call("fsync") { () throws(Errno) in try file.synchronize() }
  }

  private static func remove(_ path: String) {
    for ending in ["", "-journal", "-wal", "-shm"] { PrivateFile.unlink(path + ending) }
  }
}
