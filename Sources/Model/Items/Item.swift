/// One keychain item without its secret.
public struct Item: Hashable, Sendable {
  /// The keychain's own name for the item. It stays when the item is renamed.
  public var id: ItemID
  /// The primary key of the item's class; unique in a keychain, but for items of the class `other`.
  public var identity: ItemIdentity
  /// nil: the default, the service or server.
  public var label: ExactString?
  /// When the item was stored first (kSecAttrCreationDate).
  public var created: Timestamp
  /// When the secret or an attribute changed last (kSecAttrModificationDate).
  public var modified: Timestamp
  /// The secret's exact length in bytes.
  public var size: Int
  /// The `otpauth:` URI that its one-time codes are computed from; nil: it has none.
  public var otpauth: FurtherSecret?
  /// When the secret can be read (kSecAttrAccessible).
  public var accessibility: Accessibility
  /// The conditions under which the secret is given; empty: none.
  public var access: AccessFlags
  /// The rules of `user.keyhole.programs`; nil: the default.
  public var programs: ExactString?
  /// The secret is stored exactly as written, also where it is one line (`user.keyhole.eol` = `exact`).
  public var keepsLineEnd: Bool
  /// The secret is sealed by the vault before the keychain of another program gets it.
  public var isSealed: Bool
  /// Every attribute that is not identity, by its name without `user.`: `comment`, `generic`, …
  public var attributes: [ExactString: [UInt8]]
  /// The collection that holds the item; nil: the store has one only.
  public var collection: ExactString?

  /// An item with the defaults of `mkdir`: readable while the keychain is unlocked, without flags, rules or attributes.
  public init(
    id: ItemID, identity: ItemIdentity, label: ExactString? = nil, created: Timestamp,
    modified: Timestamp, size: Int = 0, accessibility: Accessibility = .whenUnlocked,
    access: AccessFlags = [], programs: ExactString? = nil, keepsLineEnd: Bool = false,
    isSealed: Bool = false,
    attributes: [ExactString: [UInt8]] = [:], collection: ExactString? = nil
  ) {
    self.id = id
    self.identity = identity
    self.label = label
    self.created = created
    self.modified = modified
    self.size = size
    self.accessibility = accessibility
    self.access = access
    self.programs = programs
    self.keepsLineEnd = keepsLineEnd
    self.isSealed = isSealed
    self.attributes = attributes
    self.collection = collection
  }
}

extension Item {
  /// The attribute that names the collection which holds the item, where a client of Keyhole's Secret Service has made it: letters,
  /// digits and `_`.
  public static let collectionAttribute: ExactString = "keyhole.collection"
}

/// When an item's secret can be read: Apple's kSecAttrAccessible constants, by name.
public enum Accessibility: String, CaseIterable, Sendable {
  case whenUnlocked
  case afterFirstUnlock
  case whenUnlockedThisDeviceOnly
  case afterFirstUnlockThisDeviceOnly
  case whenPasscodeSetThisDeviceOnly

  /// Secrets can be read while the keychain is locked, once it has been unlocked.
  public var survivesLock: Bool {
    switch self {
    case .afterFirstUnlock, .afterFirstUnlockThisDeviceOnly: true
    case .whenUnlocked, .whenUnlockedThisDeviceOnly, .whenPasscodeSetThisDeviceOnly: false
    }
  }
}

/// The conditions before a secret is given: Apple's SecAccessControlCreateFlags, by name and in
/// the order they were given.
public struct AccessFlags: Hashable, Sendable, ExpressibleByArrayLiteral {
  /// A constraint, a word that joins constraints (`or`, `and`), or the lock of an item's own (`applicationPassword`).
  public enum Flag: String, CaseIterable, Sendable {
    case userPresence
    case biometryAny
    case biometryCurrentSet
    case devicePasscode
    case applicationPassword
    case or
    case and
  }

  /// The flags in the order in which they were given.
  public var flags: [Flag]

  /// Takes the flags as they are. `init(text:)` refuses combinations without a meaning.
  public init(_ flags: [Flag]) {
    self.flags = flags
  }

  /// The flags of the literal, in its order.
  public init(arrayLiteral elements: Flag...) {
    flags = elements
  }

  /// Whether no flag is set, so that the item is given without a question.
  public var isEmpty: Bool { flags.isEmpty }
}
