public import Model

/// The fingers that are enrolled for a user: what `biometryCurrentSet` holds an item to.
///
/// fprintd names devices and fingers, but no templates: the same finger enrolled again is not noticed.
public enum FingerprintEnrollment {
  /// The item's attribute that keeps the digest. Names that begin so are not shown.
  public static let attribute: ExactString = "keyhole.enrolled"

  /// The enrollment that an item's flags require; nil: it has no such flag. `digest` gives that of the fingers that are
  /// enrolled now.
  ///
  /// - Throws: `unsupported` where nothing tells, or no finger is enrolled.
  public static func note(
    for access: AccessFlags, _ digest: () -> String?
  ) throws(StoreError) -> [UInt8]? {
    guard access.flags.contains(.biometryCurrentSet) else { return nil }
    guard let digest = digest() else {
      throw .unsupported(reason: "nothing tells which fingers are enrolled; fprintd's fprintd-list would")
    }
    return Array(digest.utf8)
  }
}
