package import Control
import KeychainSelection
import Model
import Prompting
package import Store
import Synchronization

/// Says once on standard error that the keychain is not what was last stored in it, or is new on this device.
package final class TrustNotice: Sendable {
  private let engine: (any KeychainEngine)?
  private let places: StoragePaths
  private let isWritten = Mutex(false)

  package init(_ engine: (any KeychainEngine)?, _ places: StoragePaths) {
    (self.engine, self.places) = (engine, places)
  }

  /// A mount serves the keychain.
  private var isOfMount: Bool { engine?.remote?.decidesAccess ?? false }

  /// The present trust in the keychain. A vault that a mount has unlocked is the mount's to judge.
  var trust: KeychainTrust {
    guard let engine else { return .trusted }
    guard isOfMount else { return engine.trust }
    return MountRegistration.serving(vault: places.vault, in: places.runtime)?.trust ?? .trusted
  }

  /// Writes the line where there is something to say and it was not said. It asks a mount once only.
  package func write() {
    guard !isWritten.withLock({ $0 }) else { return }
    let trust = trust
    if let problem = orphanedKey {
      isWritten.withLock { $0 = true }
      return StandardError.write("keyhole: \(problem.text)\n")
    }
    // A vault beside another keychain is opened when an item needs it, so it has to be asked again.
    if trust != .trusted || isOfMount { isWritten.withLock { $0 = true } }
    if let line = trust.line { StandardError.write("keyhole: \(line)\n") }
  }

  /// The vault is to be read, and only its key file is there.
  private var orphanedKey: Problem? {
    guard let engine, !isOfMount, engine.name == KeychainChoice.vault.rawValue else {
      return nil
    }
    return OrphanedKey.problem(in: places.vault)
  }

  /// - Throws: `Failure` for a keychain that is distrusted: what is read from it is not all that was stored.
  package func require() throws {
    if let problem = orphanedKey {
      isWritten.withLock { $0 = true }
      throw Failure(problem.subject, "\(problem.reason); \(problem.remedy)")
    }
    guard case .distrusted(let problem) = trust else { return }
    isWritten.withLock { $0 = true }
    throw Failure(problem.subject, "\(problem.reason); \(problem.remedy)")
  }
}

extension KeychainTrust {
  /// One line for a person; nil: there is nothing to say.
  package var line: String? {
    switch self {
    case .trusted: nil
    case .firstUse(let changed):
      "first use of this vault here: it was last changed at \(changed.iso8601); where that is not what you expect, "
        + "an older copy was put in its place"
    case .distrusted(let problem):
      problem.text.escapedForTerminal
    }
  }
}

extension Problem {
  /// One line for a person.
  fileprivate var text: String { "\(subject): \(reason); \(remedy)" }
}

extension MountRegistration {
  /// The newest mount that serves a vault, alone or beside another keychain, else the Secret Service; nil: neither does.
  package static func serving(vault: String, in folder: String) -> MountRegistration? {
    allServing(vault: vault, in: folder).last
  }

  /// The Secret Service without a mount and the mounts that serve a vault.
  package static func allServing(vault: String, in folder: String) -> [MountRegistration] {
    serving(in: folder).filter { mount in
      let keychain = mount.keychain
      // Those of a cluster, and mounts without a keychain, use none.
      return keychain.choice != .cluster && keychain.choice != .none && (keychain.vault ?? vault) == vault
    }
  }

  /// The trust of the mount's keychain, as its process reports it; nil: it does not answer.
  package var trust: KeychainTrust? { try? RunningMount(self).trust }
}
