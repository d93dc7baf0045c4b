import Control
import KeychainSelection
import Model
import Platform
import Prompting
package import SecretMemory

/// Unlocks a vault with the password that its user has just logged in with, where the two are the same.
///
/// pam_exec(8) has the password while PAM authenticates, which is before the user's mount is made at a first login. So a process in
/// the background keeps it, in locked memory, until there is a locked mount, for a minute at most.
package enum LoginUnlock {
  /// How long the process in the background waits, in seconds.
  private static let patience = 60
  /// How often it looks for a mount.
  private static let pace: UInt32 = 250_000
  private static let longestPassword = 4096

  /// Reads the password from standard input, becomes the user in `PAM_USER` where this is root, and starts the process in the
  /// background.
  ///
  /// - Throws: `Failure` where there is no such user, or this process is another user's.
  package static func begin() throws {
    guard let name = Environment.value("PAM_USER"), let account = Account(name), account.name == name else {
      throw Failure(nil, "PAM_USER names no user: `--pam` is for pam_exec(8)")
    }
    var password = try SecretInput.read(
      descriptor: StandardStream.input.number, limit: longestPassword)
    // Some versions of pam_exec send the end of the string with it.
    while let last = password.span.last, last == 0 || last == UInt8(ascii: "\n") {
      try password.resize(to: password.count - 1)
    }
    guard !password.isEmpty else { return }
    if User.real != account.user {
      var options = MountOptions()
      options.user = name
      try MountOwner(options)?.become()
    }
    try start(password)
  }

  private static func start(_ password: borrowing SecretBytes) throws {
    let child: Child
    do throws(SpawnFailure) {
      child = try Child(
        ["/proc/self/exe", "unlock", "--wait", "\(patience)"], input: .piped, errors: .discarded)
    } catch {
      throw Failure(error.program, error.reason)
    }
    try? Files.write(password.span, to: child.input)
    child.closeInput()
    // It goes on without this process.
  }

  /// Waits for a mount, or a Secret Service without one, that a passphrase opens, and tries this one once on each that there is then.
  ///
  /// - Throws: `Failure` where there is no such mount in time, or it is a wrong passphrase.
  package static func run(_ passphrase: borrowing SecretBytes, within seconds: Int) throws {
    let deadline = ContinuousClock.now + .seconds(seconds)
    while true {
      // The runtime folder is made with the session.
      let places = try StoragePaths.current()
      let waiting = MountRegistration.serving(in: places.runtime).filter { mount in
        (try? RunningMount(mount))?.waitsForPassphrase == true
      }
      if !waiting.isEmpty {
        for mount in waiting {
          try mount.attempt { () throws(StoreError) in try mount.ask(.unlock, secret: passphrase, places) }
        }
        return
      }
      guard deadline > .now else { throw Failure(nil, "no mount waits for a passphrase") }
      Pause.microseconds(pace)
    }
  }
}
