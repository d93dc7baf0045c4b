import KeychainSelection
import Model
import Prompting
import Store

/// Changes of rules for programs, to which the user has to agree: with the passphrase, by PAM, or in a place where a yes counts.
package enum RuleChange {
  /// Why the user can't agree to a change of rules of a keychain here, with the command that mends it; nil: they can.
  ///
  /// `auth-command` decides in the place of the user. The store of a cluster has no passphrase that `keyhole passphrase` could set.
  static func obstacle(_ keychain: KeychainStore) -> (reason: String, remedy: String)? {
    guard keychain.engine.name != KeychainChoice.cluster.rawValue,
      !ApprovalFactors.ofMachine(keychain).contains(.passcode),
      let reason = PromptPlaces.whyNoConsentHere,
      (try? ConfigurationSession.fetch())?.configuration.text(.authCommand) == nil
    else { return nil }
    return (
      "the keychain has no passphrase, and \(reason)",
      "`keyhole passphrase` sets a passphrase, with which you agree"
    )
  }

  /// Writes notes on the scripts that new rules name, and a warning where the rules can't be changed afterwards.
  ///
  /// - Parameters:
  ///   - rules: the lines of `user.keyhole.programs` that are new.
  ///   - session: a session with the keychain.
  package static func warn(of rules: String, in session: TreeSession) {
    for note in ProgramPath.notes(onScriptsIn: rules) { StandardError.note(note.escapedForTerminal) }
    warn(of: "a later change of this rule, nor to a program that it asks about", in: session.stores.keychain)
  }

  /// The same of another change to which the user has to agree.
  static func warn(of change: String, in keychain: KeychainStore?) {
    guard let keychain, let obstacle = obstacle(keychain) else { return }
    StandardError.write(
      "keyhole: warning: you can't agree here to \(change), as \(obstacle.reason); \(obstacle.remedy)\n")
  }
}
