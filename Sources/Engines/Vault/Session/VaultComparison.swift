public import VaultRecords

/// A vault as it is, beside what this device last saw of it.
public struct VaultComparison: Hashable, Sendable {
  /// The state that the vault's manifest has now.
  public var present: VaultState
  /// nil: this device has no anchor of the vault, or it is damaged.
  public var lastSeen: VaultState?
  /// Why the vault can only be read; nil: it is as it should be.
  public var reason: String?
}
