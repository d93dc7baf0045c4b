package import Model
import VaultRecords

/// The purpose of a key that is derived from the master key.
package enum ClusterKeyPurpose: Hashable, Sendable {
  /// Suites and settings.
  case settings
  /// Items without their secrets.
  case items
  /// The ring of earlier master keys.
  case ring
  /// Names of members, and what they have seen.
  case members
  /// The secrets of a class of items.
  case secrets(Accessibility)

  var name: String {
    switch self {
    case .settings: "settings"
    case .items: "items"
    case .ring: "ring"
    case .members: "members"
    case .secrets(let accessibility): "class/\(accessibility.code)"
    }
  }

  /// Whether a lock of the keychain leaves it.
  var survivesLock: Bool {
    switch self {
    case .settings, .items, .members: true
    case .ring: false
    case .secrets(let accessibility): accessibility.survivesLock
    }
  }
}
