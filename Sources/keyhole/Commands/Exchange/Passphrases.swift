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
    let none = "no passphrase was given: it is typed on a terminal, or is the first line of standard input"
    guard SecretInput.isTyped else { return try checked(SecretInput.readLine(), none) }
    return try checked(SecretInput.ask("Passphrase of the export: "), none)
  }

  private static func checked(
    _ passphrase: consuming SecretBytes,
    _ reason: String = "the passphrase is empty; --plain writes secrets without one"
  ) throws -> SecretBytes {
    guard !passphrase.isEmpty else { throw Failure(nil, reason) }
    return passphrase
  }
}
