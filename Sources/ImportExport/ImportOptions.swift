/// The policies of an import for values that are there already, and for names that come twice.
public struct ImportOptions: Sendable {
  /// About another value that is there already.
  public enum Conflicts: Sendable {
    case fail
    case replace
    case keep
  }

  /// About two items of the import with one name.
  public enum Duplicates: String, CaseIterable, Sendable {
    /// The second is `ACCOUNT (2)`.
    case number
    /// Those with one secret become one item with the attributes of both; others are numbered.
    case merge
    case refuse
  }

  /// About another value that is there already; by default the import fails.
  public var conflicts = Conflicts.fail
  /// About two items with one name; by default the second gets a number.
  public var duplicates = Duplicates.number

  /// The defaults.
  public init() {}
}
