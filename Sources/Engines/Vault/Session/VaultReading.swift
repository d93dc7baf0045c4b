/// How much of a vault is read when it is opened.
public enum VaultReading: Sendable {
  /// All items: whatever is wrong with the vault is known then.
  case allItems
  /// All items, but of a vault that has `many` of them none, as with `singleItems`: they can be read beside other calls.
  case fewItems
  /// None, until a call needs all. Each item that is asked for is proven by itself.
  case singleItems

  /// Reading so many takes a tenth of a second.
  static let many: UInt64 = 10_000
}
