import ArgumentParser
import Model
import Prompting

/// The process that asks a person. The file system's process starts it, or a program with the wrappers that needs the
/// passphrase, and reads its answer.
struct AuthenticateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "authenticate", abstract: "Ask a person before a secret is given.", shouldDisplay: false)

  func run() throws {
    guard PromptProcess.run() else {
      throw Failure(
        nil,
        "`keyhole authenticate` is started by a mount, or by a program with Keyhole's libraries for the passphrase"
      )
    }
  }
}
