import Backup
import Model
import Prompting
import Service
import Store
import Vault
import VaultRecords

/// Takes an open vault as it is where it is not what this device knows, and removes what a backup left out of it.
struct VaultAcceptance {
  /// The person did not agree, or can't be asked: all is as it was.
  struct Unanswered: Error {
    let reason: String
  }

  private let vault: VaultEngine
  private let places: StoragePaths

  init(_ vault: VaultEngine, _ places: StoragePaths) {
    self.vault = vault
    self.places = places
  }

  /// `yes`: without a question. It writes what it did and what is left to do.
  ///
  /// - Throws: `Unanswered`; `Failure` for a vault that can't be read or written.
  /// - Returns: whether there was something to accept.
  @discardableResult func run(yes: Bool) throws -> Bool {
    let states = try attempt { () throws(StoreError) in
      _ = try vault.items()
      return try vault.comparison()
    }
    if let reason = states.reason {
      show(states, reason)
      guard try yes || isAgreed() else {
        throw Unanswered(
          reason: "nothing was accepted: the vault can only be read until `keyhole accept`")
      }
      try attempt { () throws(StoreError) in _ = try vault.acceptRollback() }
      StandardOutput.print("the vault is taken as it is, and can be written again")
    } else if let line = vault.trust.line {
      StandardError.write("keyhole: \(line)\n")
    }
    try removeItemsLeftOut()
    return states.reason != nil
  }

  private func removeItemsLeftOut() throws {
    let count = try attempt { () throws(StoreError) in try vault.removeItemsLeftOut() }
    guard count > 0 else { return }
    StandardOutput.print(
      "removed \(count == 1 ? "the entry of 1 item" : "the entries of \(count) items") of one device only, "
        + "whose secret is in no backup")
  }

  private func show(_ states: VaultComparison, _ reason: String) {
    StandardOutput.print("reason     \(reason)".escapedForTerminal)
    StandardOutput.print("now        \(line(states.present))")
    StandardOutput.print("last seen  \(states.lastSeen.map(line) ?? "not known on this device")")
  }

  private func line(_ state: VaultState) -> String {
    // Format 1 kept no more than the generation.
    guard state.changed.seconds != 0 else { return "change \(state.generation)" }
    return
      "change \(state.generation) of \(state.changed.iso8601), \(BackupSummary.number(state.items, "item", "items"))"
  }

  private func isAgreed() throws -> Bool {
    guard SecretInput.isTyped else {
      throw Unanswered(
        reason:
          "the vault can only be read: without a terminal there is no question, and `keyhole accept` asks later"
      )
    }
    StandardError.write("Take the vault as it is now? `yes` does: ")
    return readLine() == "yes"
  }

  private func attempt<Value>(_ body: () throws(StoreError) -> Value) throws -> Value {
    do throws(StoreError) { return try body() } catch { throw Failure(places.vault, error) }
  }
}
