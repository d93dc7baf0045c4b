/// A secret that an item has beside its main one, without its bytes.
public struct FurtherSecret: Hashable, Sendable {
  /// In bytes.
  public var size: Int
  /// When it was stored last.
  public var modified: Timestamp

  /// `size`: the exact length in bytes.
  public init(size: Int = 0, modified: Timestamp) {
    (self.size, self.modified) = (size, modified)
  }
}

/// Which of an item's secrets, and what is computed from them: all are under the same class, access flags, rules and password.
public struct ItemSecrets: OptionSet, Hashable, Sendable {
  /// The bits of the set; they are stored nowhere.
  public let rawValue: UInt8

  /// The set of these bits.
  public init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// The main one.
  public static let value = ItemSecrets(rawValue: 1)
  /// The `otpauth:` URI that one-time codes are computed from.
  public static let otpauth = ItemSecrets(rawValue: 2)

  /// The one-time code that is computed from the URI: no more than that.
  public static let code = ItemSecrets(rawValue: 4)

  /// The file name of the one-time code in the item's directory.
  public static let codeName = "otp"
  /// The file name of the `otpauth:` URI in the item's directory.
  public static let otpauthName = "otpauth"
}

extension ItemSecrets {
  /// Whether the right to these is one to the others: a code can be computed from its URI.
  public func covers(_ others: ItemSecrets) -> Bool {
    (contains(.otpauth) ? union(.code) : self).isSuperset(of: others)
  }
}

extension Item {
  /// The secrets that it has.
  public var secrets: ItemSecrets { otpauth == nil ? .value : [.value, .otpauth] }

  /// Which secrets there are, and how long they are, is the keychain's to say: as in `stored`.
  public mutating func keepSecrets(of stored: Item) {
    size = stored.size
    let modified = otpauth?.modified
    otpauth = stored.otpauth.map { FurtherSecret(size: $0.size, modified: modified ?? $0.modified) }
  }
}
