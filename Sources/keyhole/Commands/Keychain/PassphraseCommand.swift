import ArgumentParser
import Control
import KeychainSelection
import Model
import Prompting
import SecretMemory
import Service
import Store
import Tree
import Vault
import VaultRecords

struct PassphraseCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "passphrase",
    abstract: "Set, change or remove the passphrase of the vault, or an item's password.",
    discussion: """
      On a terminal all is asked for, unseen. Otherwise lines of standard input are read: the present \
      passphrase where there is one, then the new one. An empty line as the new one removes it, after a question on a terminal; \
      items that are accessible `whenPasscodeSetThisDeviceOnly` are deleted then. Where the input ends before, nothing is changed.

      The vault opens with the passphrase and its key file together, unless --alone is given. All keys of the vault \
      are made new, and every item is encrypted again, in one step: a crash leaves the old passphrase valid or the \
      new one. Copies of the vault from before still open with the old key, which opens nothing of the vault any more. \
      A mount that has the vault open goes on with the new keys.

      When a passphrase is set on a terminal, a recovery code is shown, once. It opens the vault where the passphrase is \
      forgotten (--recover), without the key file too, and stays the same when the passphrase is changed; after --recover there is another one. A weak passphrase is \
      set only after a question, without a terminal only with --weak.

      With the PATH of an item that has the access flag `applicationPassword`, the item's own password is changed: a \
      dialog asks for the present one and for the new one. A crash leaves one of the two valid.
      """)

  @Flag(help: "The passphrase opens the vault without its key file, which a copy elsewhere may lack.")
  var alone = false

  @Option(
    help: ArgumentHelp(
      "The cost of a guess at the passphrase: 2^COST times 1 KiB of memory, 14 to 20.", valueName: "cost"))
  var cost: UInt8?

  @Flag(help: "Set the new passphrase also where it is weak, without a question.")
  var weak = false

  enum RecoveryOption: String, CaseIterable, ExpressibleByArgument {
    case new
    case no
  }

  @Option(
    help:
      "`new` makes a recovery code and prints it, in the place of an earlier one; `no` removes it, or makes none."
  )
  var recoveryCode: RecoveryOption?

  @Flag(help: "Set a new passphrase with the recovery code in the place of the present passphrase.")
  var recover = false

  @Option(
    help: ArgumentHelp(
      "Write a credential to a new file, or with `-` to standard output, that opens the vault without its passphrase.",
      valueName: "file"))
  var addCredential: String?

  @Flag(help: "Make the credential open nothing any more.")
  var removeCredential = false

  @Argument(help: "A path of an item.", completion: .treePath)
  var path: String?

  func validate() throws {
    if let cost, PassphraseCost(logarithm: cost) == nil { throw ValidationError("--cost is 14 to 20") }
    if addCredential != nil || removeCredential {
      let others = [addCredential != nil && removeCredential, recover, recoveryCode != nil, alone, weak]
      guard !others.contains(true) else {
        throw ValidationError(
          "--add-credential and --remove-credential go alone: the passphrase stays the same")
      }
    }
    guard path != nil else { return }
    guard !weak, recoveryCode == nil, !recover, addCredential == nil, !removeCredential else {
      throw ValidationError("these options are about the vault's passphrase")
    }
    guard cost == nil else { throw ValidationError("--cost is about the vault's passphrase") }
    guard !alone else { throw ValidationError("--alone is about the vault's passphrase") }
  }

  func run() throws {
    if let path {
      // The word may be a passphrase that was typed in the wrong place: it is not looked up, and not shown.
      guard let path = try OpenedPath.position(path), path.isSecret else {
        throw UsageError(
          message:
            "only items of the keychain have passwords; give the full path, as in keychain/generic/SERVICE/ACCOUNT"
        )
      }
      return try ItemPasswordChange(path) {
        try SecretInput.passphrase("Passphrase of the vault: ")
      }.run()
    }
    let places = try StoragePaths.ofMount()
    let vault = try attempt(places) { () throws(StoreError) in
      try VaultEngine(directory: places.vault, stateDirectory: places.state)
    }
    let change = try PassphraseChange(self, vault, places)
    let earlier = vault.key
    let mounts = try MountRegistration.allServing(vault: places.vault, in: places.runtime).filter { mount in
      try !RunningMount(mount).isLocked
    }
    let report = try attempt(places) { () throws(StoreError) in try change.run() }
    // The passphrase is another one from here on, whatever happens: a new recovery code is shown at once.
    try change.tell()
    for line in report.lines(earlier) { StandardError.write(line + "\n") }
    // Their keys are those from before: they get the new ones now, where they had any.
    for mount in mounts {
      do throws(StoreError) { try mount.ask(.unlock, secret: change.new.bytes, places) } catch {
        throw Failure(
          mount.path,
          "the passphrase was changed, and this mount could not take it: \(error.message); `keyhole unlock` gives it the new one"
        )
      }
    }
  }

  private func attempt<Value>(_ places: StoragePaths, _ body: () throws(StoreError) -> Value) throws -> Value
  {
    do throws(StoreError) { return try body() } catch { throw Failure(places.vault, error) }
  }
}

extension RekeyingReport {
  /// The notice for the user afterwards. `earlier`: the kind of key that opened the vault before.
  fileprivate func lines(_ earlier: VaultKey) -> [String] {
    let key = earlier == .keyFile ? "vault.key alone" : "the old passphrase"
    var lines = ["Copies of the vault from before still open with \(key); keep them as safe, or delete them."]
    if deleted > 0 {
      let items = deleted == 1 ? "1 item was" : "\(deleted) items were"
      lines.append("\(items) deleted that had the class whenPasscodeSetThisDeviceOnly.")
    }
    if damaged > 0 {
      let items = damaged == 1 ? "1 item is damaged and stays" : "\(damaged) items are damaged and stay"
      lines.append("\(items) so: `keyhole doctor --secrets` says which.")
    }
    return lines
  }
}
