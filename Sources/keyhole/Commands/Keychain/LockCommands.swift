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
      On a terminal the passphrase is asked for, unseen; otherwise it is the first line of standard input. One passphrase opens all
      that are locked: mounts, and the Secret Service without a mount. Where the keychain is unlocked already, nothing is asked
      or read, and a note on a terminal says so.
      """)

  @OptionGroup var quiet: QuietOption

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
    quiet.apply()
    if pam { return try LoginUnlock.begin() }
    if let wait { return try LoginUnlock.run(source.read("Passphrase: "), within: wait) }
    let places = try StoragePaths.current()
    // Without a passphrase, or open already, none has to be asked for.
    let mounts = try MountRegistration.serving(places)
    let open = Set(mounts.filter { Self.isOpen($0) }.map(\.path))
    var outcomes = try Self.unlock(mounts, SecretBytes(), places)
    if StandardStream.errors.isTerminal {
      for (mount, failure) in outcomes where failure == nil && open.contains(mount.path) {
        StandardError.note("\(mount.path): it is unlocked already")
      }
    }
    let locked = Self.mounts(outcomes, with: .locked)
    outcomes.removeAll { $0.failure == .locked }
    // A passphrase that is read from elsewhere, or asked for by systemd, is not typed here.
    if source.isGiven {
      try unlock(locked, places, &outcomes)
    } else {
      try SecretInput.askRepeatedly { try unlock(locked, places, &outcomes) }
    }
    try finish(outcomes)
  }

  /// Tries what is given until all are open, or no try is left.
  private func unlock(
    _ mounts: [MountRegistration], _ places: StoragePaths, _ outcomes: inout [Outcome]
  ) throws {
    var locked = mounts
    for _ in 0..<source.attempts where !locked.isEmpty {
      let tried = Self.unlock(locked, try source.read("Passphrase: "), places)
      let rejected = Self.mounts(tried, with: .rejected)
      outcomes = outcomes.filter { !locked.map(\.process).contains($0.mount.process) } + tried
      if source.attempts > 1, !rejected.isEmpty {
        let names = rejected.count == tried.count ? "" : " of \(rejected.map(\.path).joined(separator: ", "))"
        StandardError.write("That is not the passphrase\(names).\n")
      }
      // Of two stores that take different passphrases, one is open now.
      let half = tried.filter { $0.failure == nil && Self.lockedPart(of: $0.mount) != nil }.map(\.mount)
      if source.attempts > 1 {
        for mount in half {
          StandardError.write(
            "\(mount.path): \(Self.lockedPart(of: mount) ?? "") takes another passphrase.\n")
        }
      }
      locked = rejected + half
    }
  }

  /// The part of an unlocked mount that is still locked, as another passphrase opens it; nil: all is open.
  private static func lockedPart(of mount: MountRegistration) -> String? {
    guard let running = try? RunningMount(mount) else { return nil }
    if running.hasLockedCluster { return "what it shows of \(running.store ?? "the cluster")" }
    return running.waitsForPassphrase ? "its keychain" : nil
  }

  private static func isOpen(_ mount: MountRegistration) -> Bool {
    let running = try? RunningMount(mount)
    return running?.isLocked == false && running?.hasLockedCluster == false
  }

  private typealias Outcome = (mount: MountRegistration, failure: StoreError?)

  /// Tries a passphrase on each.
  private static func unlock(
    _ mounts: [MountRegistration], _ passphrase: borrowing SecretBytes, _ places: StoragePaths
  ) -> [Outcome] {
    var outcomes: [Outcome] = []
    for mount in mounts { outcomes.append((mount, mount.unlock(passphrase, places))) }
    return outcomes
  }

  private static func mounts(_ outcomes: [Outcome], with failure: StoreError) -> [MountRegistration] {
    outcomes.filter { $0.failure == failure }.map(\.mount)
  }

  /// - Throws: the first failure; the others are open all the same.
  private func finish(_ outcomes: [Outcome]) throws {
    for (mount, failure) in outcomes where failure == nil {
      if let line = mount.trust?.line { StandardError.write("keyhole: \(line)\n") }
      if let part = Self.lockedPart(of: mount) {
        throw Failure(
          mount.path,
          "the passphrase was taken, and \(part) takes another one, so that is still locked; `keyhole unlock` again takes it",
          .locked)
      }
    }
    for (mount, failure) in outcomes {
      guard let failure else { continue }
      guard failure != .locked else {
        throw Failure(mount.path, "no passphrase was given, so it stays locked", .locked)
      }
      throw mount.failure(failure)
    }
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
    guard !mounts.isEmpty else {
      if let dead = all(in: places.runtime).last {
        throw Failure(dead.path, "its process has died; \(dead.remedyOfDeath)")
      }
      throw Failure(nil, "nothing is mounted; `keyhole mount` mounts", .notFound)
    }
    return mounts
  }
}
