package import Model

/// The sealing of an item's secret, by its metadata.
package struct SecretFacts {
  package var accessibility: Accessibility
  /// SHA-256 of the rules for it: `AccessRules`.
  package var access: [UInt8]

  package init(_ record: ItemRecord) {
    accessibility = record.item.accessibility
    access = AccessRules.digest(record.item.access, programs: record.item.programs)
  }
}
