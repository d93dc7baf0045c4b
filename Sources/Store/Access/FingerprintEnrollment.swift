public import Model

/// The fingers that are enrolled for a user: what `biometryCurrentSet` holds an item to.
///
/// fprintd names devices and fingers, but no templates: the same finger enrolled again is not noticed.
public enum FingerprintEnrollment {
  /// The item's attribute that keeps the digest. Names that begin so are not shown.
  public static let attribute: ExactString = "keyhole.enrolled"

  /// What an item is held to by its flags; nil: it has no such flag. `digest` gives that of the fingers that are
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

  /// A digest of what fprintd-list(1) prints: lines such as `Fingerprints for user anna on Mock (press):`, and below
  /// each ` - #0: right-index-finger`. nil: no finger is enrolled.
  public static func digest(ofList text: String) -> String? {
    var (device, fingers) = (Substring(), [String]())
    for line in text.split(separator: "\n") {
      if let finger = line.wholeMatch(of: /\s*- #\d+: (.+)/) {
        fingers.append("\(device)\n\(finger.1)")
      } else if line.hasPrefix("Fingerprints for user") {
        device = line
      }
    }
    guard !fingers.isEmpty else { return nil }
    let digest = SHA256Hasher.hash(Array(fingers.sorted().joined(separator: "\n").utf8))
    return digest.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
