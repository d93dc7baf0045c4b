import KeychainSelection
import Model
import Platform
import Prompting
import SecretMemory
import Service
import Store
import Vault
import VaultRecords

/// One change of a vault's passphrase: the secrets that it takes, and those that it makes.
struct PassphraseChange {
  /// A secret that a structure can hold.
  final class HeldSecret {
    let bytes: SecretBytes

    init(_ bytes: consuming SecretBytes) { self.bytes = bytes }
  }

  private let vault: VaultEngine
  private let key: VaultKey
  private let cost: PassphraseCost
  private let options: PassphraseCommand
  /// nil: the present passphrase proves the right to the change.
  private let code: SlotSecret?
  private let present: HeldSecret
  let new: HeldSecret
  private let newCode: SlotSecret?
  private let hadPassphrase: Bool
  private let credential: SlotSecret?

  /// Asks for the secrets, on a terminal or by lines of standard input, and makes new ones. Nothing is changed.
  ///
  /// - Throws: `Failure`.
  init(_ options: PassphraseCommand, _ vault: VaultEngine, _ places: StoragePaths) throws {
    (self.options, self.vault) = (options, vault)
    hadPassphrase = vault.needsPassphrase
    cost = options.cost.flatMap { PassphraseCost(logarithm: $0) } ?? .standard
    let changesCredential = options.addCredential != nil || options.removeCredential
    if changesCredential, !vault.needsPassphrase {
      throw Failure(places.vault, "the vault takes no passphrase, and opens without a credential")
    }
    if options.recover {
      guard vault.furtherSecrets.contains(.recoveryCode) else {
        throw Failure(places.vault, "the vault has no recovery code; nothing was changed")
      }
      code = try Self.askCode(vault, places)
      present = HeldSecret(try SecretBytes())
    } else {
      code = nil
      present = HeldSecret(try Self.askPresent(vault, places))
    }
    if changesCredential {
      new = HeldSecret(try SecretBytes(copying: present.bytes))
      key = vault.key
    } else {
      new = HeldSecret(try NewPassphrase.ask(allowingWeak: options.weak))
      key = new.bytes.isEmpty ? .keyFile : options.alone ? .passphrase : .passphraseAndKeyFile
      if key == .keyFile, vault.needsPassphrase, !options.recover { try Self.confirmRemoval() }
    }
    if options.recover, new.bytes.isEmpty {
      throw Failure(nil, "the new passphrase is empty; nothing was changed")
    }
    let makesCode = !changesCredential && !new.bytes.isEmpty && Self.makesCode(options, vault)
    newCode = makesCode ? try RecoveryCode.make() : nil
    credential = options.addCredential == nil ? nil : try LoginCredential.make()
    if let file = options.addCredential, file != "-" { try Self.write(credential, to: file) }
  }

  /// Without a terminal a code is made on demand only: no person may see it.
  private static func makesCode(_ options: PassphraseCommand, _ vault: VaultEngine) -> Bool {
    switch options.recoveryCode {
    case .new: true
    case .no: false
    // The code that was used may have been seen.
    case nil: options.recover || (SecretInput.isTyped && !vault.furtherSecrets.contains(.recoveryCode))
    }
  }

  /// - Throws: as `VaultEngine.change`.
  func run() throws(StoreError) -> RekeyingReport {
    var further = FurtherSecretsChange()
    further.added = [newCode, credential].compactMap { $0 }
    if options.recoveryCode == .no { further.removed.insert(.recoveryCode) }
    if options.removeCredential { further.removed.insert(.credential) }
    let bar = ProgressBar(total: nil, "sealing the items again")
    defer { bar.end() }
    do throws(StoreError) {
      guard let code else {
        return try vault.change(
          to: key, new.bytes, present: present.bytes, cost: cost, further: further
        ) { bar.show($0, of: $1) }
      }
      return try vault.recover(with: code, to: key, new.bytes, cost: cost, further: further) {
        bar.show($0, of: $1)
      }
    } catch {
      if let file = options.addCredential, file != "-" { _ = try? Files.remove(file) }
      guard error == .rejected, code != nil else { throw error }
      throw Self.notTheCode
    }
  }
}

// MARK: - Asking

extension PassphraseChange {
  /// Two empty lines may be typed by mistake.
  private static func confirmRemoval() throws {
    guard SecretInput.isTyped else { return }
    StandardError.write(
      "This removes the passphrase: every program of yours can open the vault then, and items of the class\n"
        + "whenPasscodeSetThisDeviceOnly are deleted for good.\n")
    guard try NewPassphrase.isYes("`yes` does it; it is not shown: ") else {
      throw Failure(nil, "nothing was changed", .refused)
    }
  }

  private static func askPresent(_ vault: VaultEngine, _ places: StoragePaths) throws -> SecretBytes {
    guard vault.needsPassphrase else { return try SecretBytes() }
    return try PresentPassphrase.ask(places.vault) { (typed) throws(StoreError) in try vault.check(typed) }
  }

  /// The recovery code: before a new passphrase is chosen.
  private static func askCode(_ vault: VaultEngine, _ places: StoragePaths) throws -> SlotSecret {
    try SecretInput.askRepeatedly { try typeCode(vault, places) }
  }

  private static func typeCode(_ vault: VaultEngine, _ places: StoragePaths) throws -> SlotSecret {
    for attempt in 1...PresentPassphrase.attempts {
      let typed = try SecretInput.passphrase("Recovery code: ")
      do throws(StoreError) {
        let code = try RecoveryCode.parse(typed.span)
        try vault.check(code)
        return code
      } catch {
        let isOfPerson = SecretInput.isTyped && attempt < PresentPassphrase.attempts
        switch error {
        case .invalidValue(let reason):
          guard isOfPerson else { throw Failure(nil, "\(reason); nothing was changed", .refused) }
          StandardError.write("\(reason)\n")
        case .rejected:
          guard isOfPerson else { throw Failure(places.vault, notTheCode) }
          StandardError.write("That is not the vault's recovery code.\n")
        default: throw Failure(places.vault, error)
        }
      }
    }
    throw Failure(nil, "no recovery code was typed; nothing was changed", .refused)
  }

  private static let notTheCode = StoreError.accessDenied(
    reason: "this is not the vault's recovery code; nothing was changed")
}

// MARK: - Telling

extension PassphraseChange {
  /// Shows what was made, and what it is good for.
  func tell() throws {
    if let credential, options.addCredential == "-" {
      let line = try LoginCredential.text(of: credential)
      StandardOutput.write(line.span)
    }
    if options.addCredential != nil {
      StandardError.write(
        "The credential opens the vault without its passphrase, for every program that can read it. Encrypt it: "
          + "`systemd-creds encrypt --name=\(LoginCredential.name) FILE …`; the guide has the lines of the unit (At login).\n"
      )
    }
    guard code != nil || !isOfCredential else { return }
    if let newCode { try show(newCode) }
    guard !new.bytes.isEmpty else {
      StandardError.write(
        "The vault has no passphrase\(hadPassphrase ? " any more" : ""): its file vault.key alone opens it, for every program of yours.\n"
      )
      return
    }
    let hasCode = vault.furtherSecrets.contains(.recoveryCode)
    if hasCode, newCode == nil { StandardError.write("The recovery code is the same as before.\n") }
    StandardError.write(
      "The passphrase is set. Without it\(hasCode ? " and the recovery code" : "") the vault can't be opened.\n"
    )
  }

  private var isOfCredential: Bool { options.addCredential != nil || options.removeCredential }

  private func show(_ code: SlotSecret) throws {
    StandardError.write(
      "The recovery code, which is shown this once. Write it down, and keep it apart from this machine: with it,\n"
        + "`keyhole passphrase --recover` sets a new passphrase.\n"
        + (options.recover
          ? "It takes the place of the code that was typed, which opens nothing any more.\n\n" : "\n"))
    let text = try RecoveryCode.text(of: code)
    StandardOutput.write(text.span)
    StandardOutput.print("")
    StandardError.write("\n")
  }

  /// To a new file of the user's own.
  private static func write(_ credential: SlotSecret?, to path: String) throws {
    guard let credential else { return }
    let text = try LoginCredential.text(of: credential)
    do throws(Errno) {
      let file = try Descriptor(path, [.writing, .create, .exclusive, .noFollow])
      try Files.write(text.span, to: file.number)
      try file.synchronize()
    } catch {
      throw Failure(path, "the credential can't be written: \(error)")
    }
  }
}
