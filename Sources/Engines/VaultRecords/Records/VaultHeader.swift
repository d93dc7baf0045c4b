/// The row of the table `vault`: which store this is and what one must understand to use it.
package struct VaultHeader: Equatable {
  /// The version of the file's format.
  package var format: VaultFormat
  /// 16 random bytes that everything is bound to.
  package var store: [UInt8]
  /// Bits of features without which the vault must not be opened.
  package var critical: UInt64
  /// Bits of features that one may ignore.
  package var features: UInt64

  /// The critical features that this version knows.
  package static let understood: UInt64 = 0

  package init(format: VaultFormat, store: [UInt8], critical: UInt64 = 0, features: UInt64 = 0) {
    (self.format, self.store) = (format, store)
    (self.critical, self.features) = (critical, features)
  }
}
