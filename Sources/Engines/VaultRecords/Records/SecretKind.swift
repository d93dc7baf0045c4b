package import Model

/// How the key of a value is sealed; numbers that are not listed are reserved.
package enum SecretKind: UInt64 {
  /// Under the class key.
  case classKey = 1
  /// Under a key made of the item's password, and that under the class key.
  case password = 2
  /// The same, and what the password opens was sealed by format 1.
  case passwordOfFormatOne = 3
  /// As a whole sealed by format 1, under the class key of another device.
  case classKeyOfFormatOne = 4
  /// The same, with a password.
  case passwordAndClassKeyOfFormatOne = 5

  package var takesPassword: Bool { self != .classKey && self != .classKeyOfFormatOne }

  /// The format of the seal under the class key.
  package var outerFormat: VaultFormat {
    self == .classKeyOfFormatOne || self == .passwordAndClassKeyOfFormatOne ? .one : .two
  }

  /// The format of the seals inside.
  package var innerFormat: VaultFormat { self == .classKey || self == .password ? .two : .one }

  /// The number that a binding of a format has for it.
  package func number(in format: VaultFormat) -> UInt64 {
    guard format == .one else { return rawValue }
    return (takesPassword ? Self.password : .classKey).rawValue
  }

  /// The kind of a row of a vault of this format. - Throws: `damaged`.
  package init(_ number: UInt64, in format: VaultFormat) throws(StoreError) {
    guard let kind = SecretKind(rawValue: number), format == .two || number <= 2 else {
      throw .damaged(what: "a secret")
    }
    guard format == .one else {
      self = kind
      return
    }
    self = kind == .password ? .passwordAndClassKeyOfFormatOne : .classKeyOfFormatOne
  }

  /// The new form of a row whose class key is replaced.
  package var resealed: SecretKind {
    switch self {
    case .classKey, .classKeyOfFormatOne: .classKey
    case .password: .password
    case .passwordOfFormatOne, .passwordAndClassKeyOfFormatOne: .passwordOfFormatOne
    }
  }
}
