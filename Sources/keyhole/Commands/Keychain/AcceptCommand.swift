import ArgumentParser
import KeychainSelection
import Model
import Platform
import Prompting
import SecretMemory
import Service
import Store
import Vault

struct AcceptCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "accept", abstract: "Take a vault that was put back, cut or edited as it is now.",
    discussion: """
      Such a vault can only be read. The command shows the vault as it is and what this device last saw of it, and \
      asks. What the newer state had is not in it: put back the newest copy instead, if there is one. Of key slots \
      that Keyhole did not store, only the one that opens the vault stays. Unmount first.
      """)

  @Flag(help: "Do not ask.")
  var yes = false

  func run() throws {
    let places = try StoragePaths.current()
    try places.requireUnmounted("")
    guard Files.exists(places.vault + "/vault.db") else {
      throw Failure(places.vault, "there is no vault")
    }
    let vault = try opened(places)
    do {
      guard try !VaultAcceptance(vault, places).run(yes: yes) else { return }
    } catch let refusal as VaultAcceptance.Unanswered {
      throw Failure(nil, refusal.reason)
    }
    StandardOutput.print("the vault is as it was stored last; there is nothing to accept")
  }

  private func opened(_ places: StoragePaths) throws -> VaultEngine {
    let vault = try attempt(places) { () throws(StoreError) in
      try VaultEngine(directory: places.vault, stateDirectory: places.state)
    }
    guard vault.needsPassphrase else { return vault }
    let passphrase = try SecretInput.passphrase("Passphrase of the vault: ")
    try attempt(places) { () throws(StoreError) in try vault.unlock(passphrase) }
    return vault
  }

  private func attempt<Value>(_ places: StoragePaths, _ body: () throws(StoreError) -> Value) throws -> Value
  {
    do throws(StoreError) { return try body() } catch { throw Failure(places.vault, error) }
  }
}
