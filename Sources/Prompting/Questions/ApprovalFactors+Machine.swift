package import Store

extension ApprovalFactors {
  /// The factors that `keyhole authenticate` can ask for: the passphrase of the vault, and PAM's services.
  package static func ofMachine(_ keychain: KeychainStore) -> ApprovalFactors {
    var factors: ApprovalFactors = []
    if keychain.engine.locking.hasPasscode(sealed: true) || PAM.hasService(PAM.passcode) {
      factors.insert(.passcode)
    }
    if PAM.hasService(PAM.biometry) { factors.insert(.biometry) }
    return factors
  }
}
