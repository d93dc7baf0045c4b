/// A command that was called wrongly: exit code 2.
package struct UsageError: Error {
  package var message: String

  package init(message: String) {
    self.message = message
  }
}
