import ArgumentParser
import Model
import Platform
import Prompting
import SecretMemory

/// Where `unlock` takes the passphrase from.
struct PassphraseSourceOptions: ParsableArguments {
  @Option(name: .customLong("descriptor"), help: "Read it from this open file descriptor.")
  var descriptor: Int32?

  @Flag(name: .customLong("ask-password"), help: "Ask through systemd-ask-password.")
  var asksBySystem = false

  @Option(
    name: .customLong("credential"),
    help: "Read the systemd credential of this name, as LoadCredentialEncrypted= passes one.")
  var credential: String?

  func validate() throws {
    let count = (descriptor == nil ? 0 : 1) + (asksBySystem ? 1 : 0) + (credential == nil ? 0 : 1)
    guard count <= 1 else {
      throw ValidationError("--descriptor, --ask-password or --credential: one of them")
    }
    if let credential, credential.isEmpty || credential.contains("/") {
      throw ValidationError("a credential has a name, not a path")
    }
  }

  /// How often a person may try; what is read from elsewhere does not get better.
  var attempts: Int {
    descriptor == nil && credential == nil && (asksBySystem || SecretInput.isTyped) ? 3 : 1
  }

  /// Whether an option says where the passphrase is.
  var isGiven: Bool { descriptor != nil || credential != nil || asksBySystem }

  /// Whether a person types it.
  var asksPerson: Bool { attempts > 1 }

  func read(_ prompt: String) throws -> SecretBytes {
    if let descriptor { return try SecretInput.readLine(descriptor: descriptor) }
    if let credential { return try readCredential(credential) }
    if asksBySystem { return try askBySystem(prompt) }
    return try SecretInput.passphrase(prompt)
  }

  private func readCredential(_ name: String) throws -> SecretBytes {
    guard let folder = Environment.value("CREDENTIALS_DIRECTORY") else {
      throw Failure(nil, "there are no credentials: CREDENTIALS_DIRECTORY is not set")
    }
    let file: Descriptor
    do throws(Errno) { file = try Descriptor("\(folder)/\(name)", .reading) } catch {
      throw Failure(name, "there is no such credential: \(error)")
    }
    return try SecretInput.readLine(descriptor: file.number)
  }

  private func askBySystem(_ prompt: String) throws -> SecretBytes {
    let child: Child
    do throws(SpawnFailure) {
      child = try Child(["systemd-ask-password", "--id=keyhole:unlock", "--timeout=60", prompt])
    } catch {
      throw Failure(error.program, error.reason)
    }
    defer { child.end() }
    let answer = try SecretInput.readLine(descriptor: child.output)
    guard child.wait() == 0 else { throw Failure(nil, "systemd-ask-password got no answer") }
    return answer
  }
}
