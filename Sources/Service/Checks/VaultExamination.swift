import Control
import KeychainSelection
import Model
import Platform
import Prompting
import SecretMemory
import Store
import Tree
import Vault

/// The findings of `keyhole doctor` in the vault.
struct VaultExamination {
  private(set) var problems: [Problem] = []
  private(set) var notes: [Note] = []

  /// A vault that was never made is no problem, and looking must not make one.
  ///
  /// `opensSecrets`: each of them; `progress` is called with the number of items whose secrets were opened, and of all.
  init(_ places: StoragePaths, opensSecrets: Bool, _ progress: Examination.Progress) throws {
    guard Files.exists(places.vault + "/vault.db") else {
      problems += OrphanedKey.problem(in: places.vault).map { [$0] } ?? []
      // A log without its database is damage; opening the vault does not make one then.
      if Files.exists(places.vault + "/vault.db-wal") { try examine(places, opensSecrets: false, progress) }
      if problems.isEmpty, let note = Self.absence(places) { notes.append(note) }
      return
    }
    try examine(places, opensSecrets: opensSecrets, progress)
  }

  private mutating func examine(
    _ places: StoragePaths, opensSecrets: Bool, _ progress: Examination.Progress
  ) throws {
    do throws(StoreError) {
      let vault = try VaultEngine(directory: places.vault, stateDirectory: places.state)
      if opensSecrets, vault.lockState != .open { try unlock(vault) }
      guard vault.lockState == .open else { return askMount(places, vault) }
      // Its content can be checked only once it is open.
      let items = try vault.items()
      problems += vault.problems()
      if items.isEmpty, let note = Self.emptiness(places) { notes.append(note) }
      if let note = Self.firstUse(vault) { notes.append(note) }
      if opensSecrets { try check(vault, progress) }
    } catch {
      // A problem of the disk is why it can't be opened.
      if let problem = DiskProbe.problem(of: places.vault) { return problems.append(problem) }
      problems.append(
        Problem(
          subject: places.vault, reason: Self.reason(error), remedy: Self.remedy(error)))
    }
  }

  static func reason(_ error: StoreError) -> String {
    switch error {
    // A file that is missing or open to others: no person was asked and refused.
    case .accessDenied(let reason): reason
    // The message names `keyhole doctor`.
    case .damaged(let what): "\(what) is damaged"
    case .locked: "it takes a passphrase, and none was given"
    case .system(let error, let operation): "\(operation) failed: \(error)"
    default: error.message
    }
  }

  /// A refusal because of a file's rights says by itself what to do.
  static func remedy(_ error: StoreError) -> String {
    switch error {
    case .accessDenied, .unreachable, .unsupported, .noSpace, .readOnly, .outOfMemory: "nothing was changed"
    case .rejected, .locked: "`keyhole doctor --secrets` asks for it again"
    case .system: "`sudo dmesg` shows errors of its disk; nothing was changed"
    default: "nothing was changed; put the missing or damaged file back from a backup"
    }
  }

  private func unlock(_ vault: VaultEngine) throws(StoreError) {
    let passphrase = try? SecretInput.passphrase("Passphrase of the vault: ")
    guard let passphrase else { throw .locked }
    try vault.unlock(passphrase)
  }

  /// Only the process that has the passphrase can tell what is in the vault.
  private mutating func askMount(_ places: StoragePaths, _ vault: VaultEngine) {
    problems += vault.problems()
    let mount = MountRegistration.serving(vault: places.vault, in: places.runtime).flatMap {
      try? RunningMount($0)
    }
    if let mount { problems += mount.keychainProblems }
    guard mount?.isLocked ?? true else { return }
    notes.append(
      Note(
        subject: places.vault, reason: "it is locked, so what is in it was not looked at",
        remedy:
          "\(mount == nil ? "`keyhole mount` and `keyhole unlock` open" : "`keyhole unlock` opens") it, "
          + "or `keyhole doctor --secrets` asks for the passphrase"
      ))
  }

  /// A vault without items where there was another one: as after a restore that has left out `vault.db`.
  private static func emptiness(_ places: StoragePaths) -> Note? {
    let anchors = names(in: places.state).filter { $0.hasSuffix(".anchor") }
    guard anchors.count > 1 else { return nil }
    return Note(
      subject: places.vault, reason: "it is empty, and this user has had another vault on this device",
      remedy: "where that is not what you expect, put back a backup of that one")
  }

  /// No vault where there was one: as after its folder was removed.
  private static func absence(_ places: StoragePaths) -> Note? {
    guard names(in: places.state).contains(where: { $0.hasSuffix(".anchor") }),
      // A mount knows more of one that was moved away.
      MountRegistration.serving(vault: places.vault, in: places.runtime) == nil
    else { return nil }
    return Note(
      subject: places.vault, reason: "there is no vault, and this user has had one on this device",
      remedy: "where that is not what you expect, put back a backup of it")
  }

  private static func firstUse(_ vault: VaultEngine) -> Note? {
    guard case .firstUse(let changed) = vault.trust else { return nil }
    return Note(
      subject: "vault",
      reason: "it is used here for the first time, and was last changed at \(changed.iso8601)",
      remedy: "where that is not what you expect, put back the newest copy")
  }
}

extension VaultExamination {
  private mutating func check(
    _ vault: VaultEngine, _ progress: Examination.Progress
  ) throws(StoreError) {
    let found = try vault.checkSecrets(progress)
    for damage in found.damaged {
      problems.append(
        Problem(
          subject: FileTree.path(of: damage.item.identity), reason: damage.reason,
          remedy: "put back a copy of the vault, or delete the item or give it a new secret"))
    }
    if found.withoutItem > 0 {
      problems.append(
        Problem(
          subject: "vault",
          reason: Self.count(found.withoutItem, "secret has", "secrets have") + " no item: it was deleted",
          remedy: "put back a copy of the vault"))
    }
    guard found.ofOtherDevices > 0 else { return }
    notes.append(
      Note(
        subject: "vault",
        reason: Self.count(found.ofOtherDevices, "secret", "secrets")
          + " can be read on other devices only",
        remedy: "read them there"))
  }

  private static func count(_ number: Int, _ one: String, _ several: String) -> String {
    number == 1 ? "1 \(one)" : "\(number) \(several)"
  }
}
