import Model
import Store

extension Change {
  /// Whether a setting of Keyhole may hold since, or hold no longer.
  var mayBeOfConfiguration: Bool {
    switch subject {
    case .suite(let suite), .key(let suite, _): suite == SuiteConfiguration.suite || previous != nil
    case .keychain, .everything: true
    case .item, .otpauth, .document: false
    }
  }
}
