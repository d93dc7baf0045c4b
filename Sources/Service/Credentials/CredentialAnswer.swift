package import SecretMemory

/// The answer of a helper on standard output.
package enum CredentialAnswer: ~Copyable {
  /// Nothing.
  case none
  /// Text without a secret.
  case text(String)
  case secret(SecretBytes)
  /// A text on standard output with exit status 1, by which the program knows what happened.
  case refusal(String)
}
