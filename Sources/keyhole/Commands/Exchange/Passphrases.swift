import Model
import Prompting
import SecretMemory

/// Passphrases of exports: asked for on a terminal, else lines of standard input.
enum Passphrases {
  /// Typed twice by a person.
  static func new() throws -> SecretBytes {
    guard SecretInput.isTyped else { return try checked(SecretInput.readLine()) }
    let first = try SecretInput.ask("Passphrase for the export: ")
    let second = try SecretInput.ask("The same again: ")
    guard first == second else { throw Failure(nil, "the two passphrases differ; nothing was written") }
    return try checked(first)
  }

  static func present() throws -> SecretBytes {
    guard SecretInput.isTyped else { return try checked(SecretInput.readLine()) }
    return try checked(SecretInput.ask("Passphrase of the export: "))
  }

  private static func checked(_ passphrase: consuming SecretBytes) throws -> SecretBytes {
    guard !passphrase.isEmpty else {
      throw Failure(nil, "the passphrase is empty; --plain writes secrets without one")
    }
    return passphrase
  }
}
