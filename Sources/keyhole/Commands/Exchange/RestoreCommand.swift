import ArgumentParser
import Backup
import Formats
import KeychainSelection
import Model
import Prompting
import SecretMemory
import Service
import Store
import Vault

struct RestoreCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore", abstract: "Put back what a backup holds, and set aside what is there.",
    discussion: """
      Nothing is overwritten: a vault that is there, and suites of the same name with another content, are set aside \
      under names that are printed. Suites that the backup does not hold stay. A file that is damaged or cut off \
      changes nothing; a restore that is interrupted is finished or taken back by the next command. Unmount first.

      The passphrase of the backup, or the private key that `keyhole backup --init` showed, is asked for on a \
      terminal; otherwise it is the first line of standard input. A vault with a passphrase asks for that, too, or \
      takes it as the second line; it may be left empty.

      A vault that is older than what this device has seen can only be read: both states are shown, and a question \
      asks whether it is taken as it is. `keyhole accept` does that later.
      """)

  @Flag(
    name: [.customShort("n"), .long],
    help: "Read all of the backup and say what it holds; change nothing.")
  var dryRun = false

  @Flag(help: "Take the vault as it is without a question.")
  var yes = false

  @OptionGroup var quiet: QuietOption

  @OptionGroup var source: PassphraseSourceOptions

  @OptionGroup var location: VaultLocation

  @Argument(help: "The backup.", completion: .file())
  var file: String

  func run() throws {
    quiet.apply()
    let places = try location.places()
    if !dryRun { try Self.requireUnmounted(places) }
    let hasVault: Bool
    do throws(BackupError) {
      var backup = try Self.changingNothing { () throws(BackupError) in try opened(BackupInput(file)) }
      let bar = ProgressBar(total: nil, dryRun ? "reading the backup" : "restoring", .bytes)
      defer { bar.end() }
      backup.onProgress = { bar.show($0, of: $1) }
      guard !dryRun else {
        let summary = try backup.check()
        bar.end()
        return show(summary)
      }
      let report = try Restore(places.backupFolders).run(backup) { (_) throws(BackupError) in
        do { try Self.requireUnmounted(places) } catch let failure as Failure {
          throw BackupError(failure.subject, failure.reason)
        } catch {}
      }
      bar.end()
      tell(report)
      hasVault = report.summary.hasVault
    } catch {
      throw Failure(error)
    }
    if hasVault { try RestoredVault(places, yes: yes).settle() }
  }

  private static func requireUnmounted(_ places: StoragePaths) throws {
    try places.requireUnmounted(", then restore; nothing was changed")
  }

  private static func changingNothing<Value>(
    _ body: () throws(BackupError) -> Value
  ) throws(BackupError) -> Value {
    do throws(BackupError) { return try body() } catch {
      var failure = error
      failure.reason += "; nothing was changed"
      throw failure
    }
  }

  private func opened(_ input: BackupInput) throws(BackupError) -> OpenBackup {
    switch input.lock {
    case .passphrase:
      return try input.opened(passphrase: read("Passphrase of the backup: "))
    case .privateKey(publicKey: let publicKey):
      let number = BackupKey.number(of: publicKey)
      let text = try read("Private key \(number) of the backup: ")
      do throws(BackupError) {
        return try input.opened(privateKey: BackupKey.privateKey(of: text))
      } catch {
        throw BackupError(file, "\(error.reason); it takes the private key that ends with \(number)")
      }
    }
  }

  private func read(_ prompt: String) throws(BackupError) -> SecretBytes {
    do { return try source.read(prompt) } catch let failure as Failure {
      throw BackupError(failure.subject, failure.reason)
    } catch {
      throw BackupError(nil, "it can't be read: there is not enough locked memory")
    }
  }

  private func show(_ summary: BackupSummary) {
    StandardOutput.print(
      "\(file): whole, of \(summary.created.iso8601): \(summary.contents)".escapedForTerminal)
  }

  private func tell(_ report: RestoreReport) {
    let summary = report.summary
    let same = summary.suites - min(summary.suites, report.suites)
    let suites = BackupSummary.number(report.suites, "suite of settings", "suites of settings")
    StandardOutput.print(
      "restored the backup of \(summary.created.iso8601): \(suites)"
        + (same > 0 ? " (\(same) are the same)" : "")
        + (summary.hasVault
          ? ", \(BackupSummary.number(summary.items, "item", "items")) of the vault" : ", no vault"))
    if summary.leftOut > 0 {
      StandardOutput.print(
        "not in the backup: \(BackupSummary.number(summary.leftOut, "item", "items")) of the device that made it only"
      )
    }
    for path in report.setAside { StandardOutput.print("set aside: \(path.forStandardOutput)") }
  }
}

/// The vault after a restore: whether it can be written, and what it shows.
private struct RestoredVault {
  private let places: StoragePaths
  private let yes: Bool

  init(_ places: StoragePaths, yes: Bool) {
    self.places = places
    self.yes = yes
  }

  /// The backup is in its places: what is left to do can be done later.
  ///
  /// - Throws: `Failure` where the vault can't be opened, with the command that tries again.
  func settle() throws {
    keepChoice()
    guard let vault = try opened() else {
      return say(
        "the vault takes its passphrase: `keyhole accept` asks for it and says whether it can be written")
    }
    do {
      try VaultAcceptance(vault, places).run(yes: yes)
    } catch let refusal as VaultAcceptance.Unanswered {
      say(refusal.reason)
    }
  }

  /// A vault that is restored where no keychain was chosen yet is the one that mounts are to show.
  private func keepChoice() {
    ChosenKeychain.note(.vault, state: places.state)
    guard ChosenKeychain.fetch(state: places.state) == .secretService else { return }
    say(
      "the keychain is the Secret Service, so mounts do not show the vault: `keyhole mount -o keychain=vault` does"
    )
  }

  /// nil: its passphrase was not given.
  private func opened() throws -> VaultEngine? {
    do throws(StoreError) {
      let vault = try VaultEngine(directory: places.vault, stateDirectory: places.state)
      guard vault.needsPassphrase else { return vault }
      let passphrase = try? SecretInput.passphrase("Passphrase of the restored vault (empty: later): ")
      guard let passphrase, !passphrase.isEmpty else { return nil }
      try vault.unlock(passphrase)
      return vault
    } catch .rejected {
      throw Failure(
        places.vault,
        "it is restored, and this is not its passphrase; `keyhole accept` asks for it again")
    } catch {
      throw Failure(
        places.vault,
        "it is restored, and can't be opened: \(error.message); then `keyhole accept` says whether it can be written"
      )
    }
  }

  private func say(_ text: String) {
    StandardError.write("keyhole: \(text.escapedForTerminal)\n")
  }
}
