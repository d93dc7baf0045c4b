/// A fact that is no fault, and yet worth knowing.
package struct Note: Equatable {
  package let subject: String
  package let reason: String
  /// The command, or what else to do.
  package let remedy: String
}
