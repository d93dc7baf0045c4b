public import Model

/// A state of a vault, as its manifest or an anchor knows it.
public struct VaultState: Hashable, Sendable {
  /// Grows with every change.
  public var generation: UInt64
  /// When the vault was changed to this state.
  public var changed: Timestamp
  /// How many items it holds, those that do not show among them.
  public var items: UInt64

  /// - Parameters:
  ///   - generation: grows by one with each change of the vault.
  ///   - changed: when that was.
  ///   - items: the number of items.
  public init(generation: UInt64, changed: Timestamp, items: UInt64) {
    (self.generation, self.changed, self.items) = (generation, changed, items)
  }
}
