/// The extended attributes that Keyhole itself defines, by their full names.
enum AttributeName {
  static let name = "user.keyhole.name"
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
