package import Model

extension Item {
  /// Everything that a secret is bound to is the same.
  package func hasSameAccess(as other: Item) -> Bool {
    accessibility == other.accessibility && access == other.access && programs == other.programs
  }

  /// The differences from an earlier state, besides the secrets.
  package func changes(since old: Item) -> VersionChanges {
    var changes: VersionChanges = []
    if !hasSameAccess(as: old) { changes.insert(.protection) }
    if identity != old.identity { changes.insert(.name) }
    if label != old.label || keepsLineEnd != old.keepsLineEnd || shownAttributes != old.shownAttributes {
      changes.insert(.attributes)
    }
    return changes
  }

  private var shownAttributes: [ExactString: [UInt8]] {
    attributes.filter { name, _ in
      if name == Item.historyAttribute || name == FingerprintEnrollment.attribute { return false }
      return !identity.isDocument
        || name != SealedDocument.links && !name.string.hasPrefix(SealedDocument.derived)
    }
  }
}
