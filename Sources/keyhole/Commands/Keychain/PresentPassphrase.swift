import Model
import Prompting
import SecretMemory
import Service

/// A passphrase that is to be changed.
enum PresentPassphrase {
  /// How often a person may type it.
  static let attempts = 3

  /// On a terminal it is asked for until `check` takes it, three times at most; else it is a line of standard input, which is not checked.
  ///
  /// - Throws: `Failure`, of `subject`, for any other error of `check` than `rejected` and `locked`.
  static func ask(
    _ subject: String, _ check: (borrowing SecretBytes) throws(StoreError) -> Void
  ) throws -> SecretBytes {
    guard SecretInput.isTyped else {
      let present = try SecretInput.readLine()
      guard !present.isEmpty else {
        throw Failure(
          nil,
          "no passphrase was given: the present one is the first line of standard input; nothing was changed",
          .locked)
      }
      return present
    }
    return try SecretInput.askRepeatedly { try type(subject, check) }
  }

  private static func type(
    _ subject: String, _ check: (borrowing SecretBytes) throws(StoreError) -> Void
  ) throws -> SecretBytes {
    for _ in 1..<attempts {
      let present = try SecretInput.ask("Present passphrase: ")
      do throws(StoreError) {
        try check(present)
        return present
      } catch {
        guard error == .rejected || error == .locked else { throw Failure(subject, error) }
        StandardError.write("That is not the passphrase.\n")
      }
    }
    return try SecretInput.ask("Present passphrase: ")
  }
}
