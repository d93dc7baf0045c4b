import ArgumentParser
import Backup
import Formats
import KeychainSelection
import Model
import Platform
import Prompting
import SecretMemory
import Service
import Store
import Vault

struct BackupCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup", abstract: "Write all settings and the vault into one sealed file.",
    discussion: """
      The vault is copied as it is stored: it need not be unlocked, and no item asks. The secrets of this device only \
      (…ThisDeviceOnly) are left out and counted. The file is read back before it gets its name; one that is there is \
      kept, unless --replace is given. It works with a mount and without.

      The file is sealed to a passphrase, which is asked for twice on a terminal and is otherwise the first line of \
      standard input. After `keyhole backup --init` it is sealed to the key that was made then, and nothing is asked, \
      as cron and systemd timers need it. `keyhole restore` opens it.

      Items of a Secret Service are not in it, nor is a store in a cluster: `keyhole export` writes those.
      """)

  @Flag(
    name: .customLong("init"),
    help: "Make a key for backups that ask nothing: its private half is shown once and kept nowhere.")
  var makesKey = false

  @Flag(help: "Overwrite FILE, once the new backup is complete and was read back.")
  var replace = false

  @Flag(help: "Seal it to a passphrase although there is a key.")
  var passphrase = false

  @Flag(
    name: .customLong("without-secret-service"),
    help: "Where the Secret Service is the keychain: leave its items out, and say how many.")
  var leavesOutService = false

  @Flag(
    name: .customLong("without-cluster"),
    help:
      "Where a store in a cluster is mounted: back up the settings and the vault of this machine all the same."
  )
  var leavesOutCluster = false

  @OptionGroup var quiet: QuietOption

  @OptionGroup var source: PassphraseSourceOptions

  @OptionGroup var cost: SealingCostOption

  @OptionGroup var location: VaultLocation

  @Argument(help: "The file to write.", completion: .file())
  var file: String?

  func validate() throws {
    if makesKey == (file != nil) { throw ValidationError("it takes a FILE, or --init to make a key") }
    if file == "-" {
      throw ValidationError(
        "a backup is read back before it counts, so it is written to a file; ./- is one of this name")
    }
  }

  func run() throws {
    quiet.apply()
    let places = try location.places()
    guard let file else { return try BackupKeyPair(places).make() }
    if !leavesOutCluster { try places.requireNoCluster() }
    let service = ServiceItems(places)
    if !leavesOutService { try service.requireNone() }
    if let notice = try BackupTrust(places).notice(replace ? .replaces : .keeps) {
      StandardError.write("keyhole: \(notice)\n")
    }
    do throws(BackupError) {
      var backup = try BackupFile(file, of: places.backupFolders, existing: replace ? .isReplaced : .isKept)
      backup.onOmission = { path, reason in
        StandardError.write("keyhole: \(path.escapedForTerminal): \(reason); it is not in the backup\n")
      }
      let key = passphrase || source.isGiven ? nil : try BackupKey.publicKey(places.configuration)
      let summary = try write(backup, sealedTo: key)
      let seal = key.map { " (sealed to the key \(BackupKey.number(of: $0)))" } ?? ""
      StandardOutput.print("\(file): \(summary.contents)\(seal)".escapedForTerminal)
      if !summary.hasVault {
        StandardError.write("keyhole: there is no vault in \(places.vault.escapedForTerminal)\n")
      }
      if let note = service.note { StandardError.write("keyhole: \(note)\n") }
    } catch {
      throw Failure(error)
    }
  }

  private func write(
    _ backup: BackupFile, sealedTo key: [UInt8]?
  ) throws(BackupError) -> BackupSummary {
    var backup = backup
    if let key {
      let bar = Self.bar(&backup)
      defer { bar.end() }
      return try backup.write(sealedTo: key)
    }
    let passphrase: SecretBytes
    do { passphrase = try newPassphrase() } catch let failure as Failure {
      throw BackupError(failure.subject, failure.reason)
    } catch {
      throw BackupError(nil, "the passphrase can't be read: there is not enough locked memory")
    }
    let bar = Self.bar(&backup)
    defer { bar.end() }
    return try backup.write(sealedTo: passphrase, cost: cost.value)
  }

  private static func bar(_ backup: inout BackupFile) -> ProgressBar {
    let bar = ProgressBar(total: nil, "backing up", .bytes)
    backup.onProgress = { step, done, size in
      bar.show(done, of: size, step == .writing ? "backing up" : "reading it back")
    }
    return bar
  }

  /// Typed twice by a person.
  private func newPassphrase() throws -> SecretBytes {
    let first = try source.read("Passphrase for the backup: ")
    guard !first.isEmpty else {
      throw Failure(
        nil,
        "there is no passphrase, so nothing was written; `keyhole backup --init` makes a key that needs none")
    }
    guard source.asksPerson else { return first }
    guard try source.read("The same again: ") == first else {
      throw Failure(nil, "the two passphrases differ; nothing was written")
    }
    return first
  }
}

/// `--vault`, where no mount says which vault it is.
struct VaultLocation: ParsableArguments {
  @Option(
    help: "The vault's folder, where it is not the usual one (the mount option vault=).",
    completion: .directory)
  var vault: String?

  func places() throws -> StoragePaths {
    let places = try StoragePaths.ofMount()
    guard let vault else { return places }
    guard vault.hasPrefix("/") else { throw UsageError(message: "--vault takes an absolute path") }
    return places.with(vault: vault)
  }
}

extension StoragePaths {
  var backupFolders: BackupFolders {
    BackupFolders(settings: configuration, vault: vault, state: state)
  }
}

extension BackupSummary {
  /// One line for a person.
  var contents: String {
    var text = Self.number(suites, "suite of settings", "suites of settings")
    if hasVault { text += ", \(Self.number(items, "item", "items")) of the vault" }
    if leftOut > 0 { text += "; left out: \(Self.number(leftOut, "item", "items")) of this device only" }
    return text
  }

  static func number(_ count: UInt64, _ one: String, _ several: String) -> String {
    count == 1 ? "1 \(one)" : "\(count) \(several)"
  }
}

extension Failure {
  init(_ error: BackupError) {
    self.init(error.subject, error.reason, error.kind)
  }
}
