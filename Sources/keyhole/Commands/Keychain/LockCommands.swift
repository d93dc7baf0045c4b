import ArgumentParser
import Control
import KeychainSelection
import Model
import Platform
import Prompting
import SecretMemory
import Service
import Store

struct LockCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "lock", abstract: "Lock the keychain of the mount, and wipe what it holds of secrets.",
    discussion: """
      Names and attributes still show. Secrets that are accessible `afterFirstUnlock` can still be read.

      Of a vault without a passphrase the mount alone is locked: any program of the user can open it with the key file.
      """)

  func run() throws {
    let places = try StoragePaths.current()
    var failures: [any Error] = []
    // One that hangs must not keep the others open.
    for mount in try MountRegistration.serving(places) {
      do { try mount.ask(.lock, places) } catch { failures.append(error) }
    }
    if let failure = failures.first { throw failure }
  }
}

struct UnlockCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "unlock", abstract: "Unlock the keychain of the mount.",
    discussion: """
      On a terminal the passphrase is asked for, unseen; otherwise it is the first line of standard input. Where the
      keychain is unlocked already, nothing is asked or read, and a note on a terminal says so.
      """)

  @OptionGroup var source: PassphraseSourceOptions

  @Option(
    help: ArgumentHelp(
      "Wait so many seconds for a mount that is locked, and try once.", valueName: "seconds"))
  var wait: Int?

  @Flag(
    help:
      "For pam_exec(8) with expose_authtok: read the password of the login from standard input, and unlock the mount of PAM_USER in the background with it, now or within a minute."
  )
  var pam = false

  func validate() throws {
    if pam, source.isGiven || wait != nil { throw ValidationError("--pam goes alone") }
    if let wait, !(1...3600).contains(wait) { throw ValidationError("--wait takes 1 to 3600 seconds") }
  }

  func run() throws {
    if pam { return try LoginUnlock.begin() }
    if let wait { return try LoginUnlock.run(source.read("Passphrase: "), within: wait) }
    let places = try StoragePaths.current()
    for mount in try MountRegistration.serving(places) { try unlock(mount, places) }
  }

  private func unlock(_ mount: MountRegistration, _ places: StoragePaths) throws {
    let running = try? RunningMount(mount)
    let isOpen = running?.isLocked == false && running?.hasLockedCluster == false
    // Without a passphrase, or open already, none has to be asked for.
    var failure = try mount.unlock(SecretBytes(), places)
    if isOpen, failure == nil, StandardStream.errors.isTerminal {
      StandardError.note("\(mount.path): it is unlocked already")
    }
    guard failure == .locked else { return try finish(failure, mount) }
    for _ in 0..<source.attempts {
      failure = try mount.unlock(source.read("Passphrase: "), places)
      guard failure == .rejected else { break }
      if source.attempts > 1 { StandardError.write("That is not the passphrase.\n") }
    }
    guard failure != .locked else {
      throw Failure(mount.path, "no passphrase was given, so it stays locked", .locked)
    }
    try finish(failure, mount)
  }

  private func finish(_ failure: StoreError?, _ mount: MountRegistration) throws {
    if let failure { throw mount.failure(failure) }
    if let line = mount.trust?.line { StandardError.write("keyhole: \(line)\n") }
  }
}

extension MountRegistration {
  /// The error that the mount replied; nil: it is unlocked.
  func unlock(_ passphrase: borrowing SecretBytes, _ places: StoragePaths) -> StoreError? {
    do throws(StoreError) {
      try ask(.unlock, secret: passphrase, places)
      return nil
    } catch {
      return error
    }
  }

  /// The mounts that a command can ask, and the Secret Service without one. - Throws: `Failure` where there is none.
  static func serving(_ places: StoragePaths) throws -> [MountRegistration] {
    let mounts = serving(in: places.runtime)
    guard !mounts.isEmpty else { throw Failure(nil, "nothing is mounted; `keyhole mount` mounts") }
    return mounts
  }
}
