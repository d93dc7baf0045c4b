extension Span<UInt8> {
  /// Whether the name of an attribute begins with `user.`. Without a call, as each request asks at least twice.
  package var isUserAttribute: Bool {
    guard count >= 5 else { return false }
    return self[0] == 0x75 && self[1] == 0x73 && self[2] == 0x65 && self[3] == 0x72 && self[4] == 0x2E
  }
}

/// The extended attributes that Keyhole itself defines, by their full names.
enum AttributeName {
  static let name = "user.keyhole.name"
  static let origin = "user.keyhole.origin"
  static let stale = "user.keyhole.stale"
  static let guarded = "user.keyhole.guarded"
  static let programs = "user.keyhole.programs"
  static let type = "user.keyhole.type"

  /// Whether it says who may have the secret.
  static func isRule(_ name: String) -> Bool {
    name == "user.keyhole.access" || name == programs
  }

  /// Whether it decides how well the secret is kept.
  static func isProtection(_ name: String) -> Bool {
    isRule(name) || name == "user.keyhole.accessible" || name == "user.keyhole.sealed"
  }
}
