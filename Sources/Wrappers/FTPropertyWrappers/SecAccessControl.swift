import Model

/// The conditions under which an item is given: Apple's type of that name.
public struct SecAccessControlCreateFlags: OptionSet, Sendable {
  /// The bits of the flags, with the numbers of Apple's `SecAccessControlCreateFlags`.
  public let rawValue: UInt

  /// Flags of these bits. Unknown bits are kept; `modifyAccess(using:flags:)` throws for them.
  public init(rawValue: UInt) {
    self.rawValue = rawValue
  }

  /// Either what `devicePasscode` takes or what `biometryAny` takes.
  public static let userPresence = SecAccessControlCreateFlags(rawValue: 1 << 0)
  /// PAM's service `keyhole-biometry`, such as a finger with pam_fprintd(8).
  public static let biometryAny = SecAccessControlCreateFlags(rawValue: 1 << 1)
  /// As `biometryAny`, for as long as the same fingers are enrolled as when the flag was stored.
  public static let biometryCurrentSet = SecAccessControlCreateFlags(rawValue: 1 << 3)
  /// The passphrase of the vault; where it has none, PAM's service `keyhole`.
  public static let devicePasscode = SecAccessControlCreateFlags(rawValue: 1 << 4)
  /// One of the constraints is enough. It takes at least two constraints, and excludes `and`.
  public static let or = SecAccessControlCreateFlags(rawValue: 1 << 14)
  /// Every constraint has to be met, as it is without `or`. It takes at least two constraints, and excludes `or`.
  public static let and = SecAccessControlCreateFlags(rawValue: 1 << 15)
  /// A password of the item's own, besides the constraints. In the vault the secret's key is sealed under it.
  public static let applicationPassword = SecAccessControlCreateFlags(rawValue: 1 << 31)
}

extension SecAccessControlCreateFlags {
  private static let constraints: [(SecAccessControlCreateFlags, AccessFlags.Flag)] = [
    (.userPresence, .userPresence), (.biometryAny, .biometryAny),
    (.biometryCurrentSet, .biometryCurrentSet), (.devicePasscode, .devicePasscode),
    (.applicationPassword, .applicationPassword),
  ]
  private static let operators: [(SecAccessControlCreateFlags, AccessFlags.Flag)] = [
    (.or, .or), (.and, .and),
  ]

  init(_ flags: AccessFlags) {
    self.init((Self.constraints + Self.operators).filter { flags.flags.contains($0.1) }.map(\.0))
  }

  /// In the order of the text: `biometryAny|or|devicePasscode`.
  var accessFlags: AccessFlags {
    var flags = Self.constraints.filter { contains($0.0) }.map(\.1)
    flags.insert(contentsOf: Self.operators.filter { contains($0.0) }.map(\.1), at: min(1, flags.count))
    return AccessFlags(flags)
  }
}

/// The class and the conditions under which an item can be read.
public final class SecAccessControl: Sendable {
  /// One of the constants that begin with `kSecAttrAccessible`.
  public let protection: CFString
  /// The conditions under which the value is given; empty: none.
  public let flags: SecAccessControlCreateFlags
  let accessibility: Accessibility

  /// - Throws: `KeychainError.accessControllError` for a protection or flags that do not exist.
  init(_ protection: CFString, _ flags: SecAccessControlCreateFlags) throws {
    let word = SecurityWords.accessibilities.word(protection) ?? ""
    let all: SecAccessControlCreateFlags = [
      .userPresence, .biometryAny, .biometryCurrentSet, .devicePasscode, .or, .and, .applicationPassword,
    ]
    guard let accessibility = Accessibility(rawValue: word), all.isSuperset(of: flags) else {
      throw KeychainError.accessControllError(status: KeychainError.osSucureInvalidParameter)
    }
    self.protection = protection
    self.flags = flags
    self.accessibility = accessibility
  }

  init(_ item: Item) {
    protection = SecurityWords.accessibilities.code(item.accessibility.rawValue)
    flags = SecAccessControlCreateFlags(item.access)
    accessibility = item.accessibility
  }
}
