/// The versions of the file format that this version of Keyhole reads. It writes the newest one.
package enum VaultFormat: UInt32, Comparable {
  /// Keyhole 0.1: `Documentation/VAULT-1.md`. Read-only.
  case one = 1
  /// `Documentation/VAULT.md`.
  case two = 2

  package static let newest = VaultFormat.two

  /// The first bytes of every binding, and of every HKDF info.
  package var prefix: String {
    switch self {
    case .one: "keyhole/v1"
    case .two: "keyhole/v2"
    }
  }

  /// The HKDF info of the key with this name.
  package func info(_ name: String) -> [UInt8] { Array("\(prefix)/\(name)".utf8) }

  package static func < (left: VaultFormat, right: VaultFormat) -> Bool { left.rawValue < right.rawValue }
}
