import Model
package import VaultRecords

/// The random number of one commit: by it, it is known afterwards whether it was made.
package struct Operation: Hashable, Sendable {
  package let number: ItemKey

  package init(_ number: ItemKey) { self.number = number }

  package static func random() -> Operation { Operation(.random()) }
}
