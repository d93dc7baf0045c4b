import ArgumentParser
import KeychainSelection
import Model
import Prompting
import SecretMemory
import Service
import Store
import Vault

struct UpgradeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "upgrade", abstract: "Bring the vault of Keyhole 0.1 to this version.",
    discussion: """
      Until then it can only be read. A copy of it is kept beside it, which opens with the same key file and \
      passphrase as before. The upgrade is one step: killed at any moment it leaves the old vault or the new one. \
      Unmount first. On a terminal the passphrase is asked for, unseen; otherwise it is the first line of standard \
      input.
      """)

  @Flag(help: "Also a vault that was put back, cut or edited: it is taken as it is.")
  var accept = false

  @OptionGroup var quiet: QuietOption

  func run() throws {
    quiet.apply()
    let places = try StoragePaths.current()
    try places.requireUnmounted(", then upgrade")
    let report = try attempt(places) { () throws(StoreError) -> VaultUpgrade.Report? in
      guard try VaultUpgrade.isNeeded(places.vault, stateDirectory: places.state) else { return nil }
      let passphrase = try passphrase(places)
      let bar = ProgressBar(total: nil, "upgrading the vault")
      defer { bar.end() }
      return try VaultUpgrade.run(
        places.vault, stateDirectory: places.state, passphrase,
        accept ? .acceptsAsItIs : .refusesDistrusted
      ) { bar.show($0, of: $1) }
    }
    guard let report else {
      return StandardOutput.print(
        "\(places.vault.escapedForTerminal) holds no vault of an older version; nothing was changed")
    }
    tell(report)
  }

  private func passphrase(_ places: StoragePaths) throws(StoreError) -> SecretBytes {
    let vault = try VaultEngine(directory: places.vault, stateDirectory: places.state)
    let given: SecretBytes? =
      if vault.needsPassphrase {
        try? SecretInput.passphrase("Passphrase of the vault: ")
      } else {
        try? SecretBytes()
      }
    guard let given else { throw .locked }
    return given
  }

  private func tell(_ report: VaultUpgrade.Report) {
    let keys = report.keys
    StandardOutput.print(
      "upgraded \(Self.count(keys.items, "item")); the vault of Keyhole 0.1 is kept as \(report.copy.escapedForTerminal)"
    )
    if keys.ofOtherDevices > 0 {
      StandardOutput.print(
        "\(Self.count(keys.ofOtherDevices, "secret")) can be read only on the device that stored it, as before"
      )
    }
    if keys.damaged > 0 {
      StandardOutput.print(
        "damaged, and left as they are: \(Self.count(keys.damaged, "item")); `keyhole doctor --secrets` names them"
      )
    }
    StandardError.write(
      "The copy opens with the key that the vault had; keep it as safe, or delete it when all is well.\n")
  }

  private static func count(_ number: Int, _ noun: String) -> String {
    "\(number) \(noun)\(number == 1 ? "" : "s")"
  }

  private func attempt<Value>(_ places: StoragePaths, _ body: () throws(StoreError) -> Value) throws -> Value
  {
    do throws(StoreError) { return try body() } catch { throw Failure(places.vault, error) }
  }
}
