public import Model
import Platform

extension Item {
  /// Whether the same has to be done before the secret is given.
  public func hasSameProtection(as other: Item) -> Bool {
    let enrolled = FingerprintEnrollment.attribute
    return access == other.access && programs == other.programs && accessibility == other.accessibility
      && isToBeSealed == other.isToBeSealed && attributes[enrolled] == other.attributes[enrolled]
  }

  func change(to other: Item) -> ProtectionChange {
    var lines: [String] = []
    if access != other.access { lines.append("access flags: \(access.shown) → \(other.access.shown)") }
    if programs != other.programs {
      lines.append("rules for programs: \(Self.shown(programs)) → \(Self.shown(other.programs))")
    }
    if accessibility != other.accessibility {
      lines.append("accessible: \(accessibility.rawValue) → \(other.accessibility.rawValue)")
    }
    if identity != other.identity { lines.append("folder: another one, with other rules") }
    let losesFlags = !Set(access.flags).isSubset(of: other.access.flags)
    let losesRules = (programs != nil && other.programs == nil) || identity != other.identity
    return ProtectionChange(lines: lines, removesProtection: losesFlags || losesRules)
  }

  static func shown(_ rules: ExactString?) -> String {
    rules.map { $0.string.split(separator: "\n").joined(separator: "; ") } ?? "none"
  }
}

extension AccessFlags {
  fileprivate var shown: String { isEmpty ? "none" : text }
}
