import DefaultKeychain
import Model

/// A generic password: `@GenericPassword(service: "my.service") var myName: String?`.
///
/// Without an account the service's oldest item is used.
@propertyWrapper
open class GenericPassword<T: Codable>: KeychainItemPropertyWrapper<T>, @unchecked Sendable {
  /// The access control that every save sets.
  public struct AccessControlSettings: Sendable {
    /// When the item can be read: one of the constants that begin with `kSecAttrAccessible`.
    public let access: CFString
    /// The conditions under which the value is given; empty: none.
    public let flags: SecAccessControlCreateFlags
  }

  /// The item's service; nil: any.
  @QueryElement(key: kSecAttrService) open private(set) var service: String?
  /// The item's account; nil: any.
  @QueryElement(key: kSecAttrAccount) open private(set) var account: String?
  /// The class and the conditions under which the value can be read.
  @QueryElement(key: kSecAttrAccessControl, constraints: [.override(kSecAttrAccessible)])
  open private(set) var accessControl: SecAccessControl?
  /// The access control for saves after which `modifyAccess(using:flags:)` set no other; nil: none.
  public let defaultAccessControl: AccessControlSettings?

  /// Declares an item by its attributes, without an access control.
  ///
  /// - Parameters:
  ///   - service: the item's `kSecAttrService`.
  ///   - account: the item's `kSecAttrAccount`; nil: any.
  ///   - refreshPolicy: when the keychain is read and written.
  ///   - defaultValue: the value where the keychain has no such item; it is never stored.
  public init(
    service: String, account: String? = nil, refreshPolicy: KeychainDataRefreshPolicy = .onAccess,
    defaultValue: T? = nil
  ) {
    defaultAccessControl = nil
    super.init(refreshPolicy: refreshPolicy, defaultValue: defaultValue)
    (self.service, self.account) = (service, account)
  }

  /// With a condition for every save: `accessOption` is one of the constants that begin with
  /// `kSecAttrAccessible`, `accessFlags` has the conditions for reading the value.
  public init(
    service: String, account: String? = nil, refreshPolicy: KeychainDataRefreshPolicy = .onAccess,
    defaultValue: T? = nil, accessOption: CFString, accessFlags: SecAccessControlCreateFlags
  ) {
    defaultAccessControl = AccessControlSettings(access: accessOption, flags: accessFlags)
    super.init(refreshPolicy: refreshPolicy, defaultValue: defaultValue)
    (self.service, self.account) = (service, account)
  }

  /// `kSecClassGenericPassword`.
  open override var itemClass: CFString { kSecClassGenericPassword }
  /// Service and account.
  open override var primaryKey: Set<CFString> { [kSecAttrAccount, kSecAttrService] }
  override var query: ItemQuery { .generic(service: service, account: account) }

  open override var wrappedValue: T? {
    get { super.wrappedValue }
    set { super.wrappedValue = newValue }
  }

  /// The changes of the value (`values`), and the last error (`error`).
  public override var projectedValue: LiveProjection<T?> { super.projectedValue }

  /// Sets the class and the conditions under which the value can be read, from the next save on.
  ///
  /// - Throws: `KeychainError.accessControllError` for a constant or flags that don't exist.
  public func modifyAccess(using accessible: CFString, flags: SecAccessControlCreateFlags) throws {
    accessControl = try SecAccessControl(accessible, flags)
  }

  /// Stores the value and the attributes, with the default access control where none was set.
  open override func saveToKeychain() throws {
    if let settings = defaultAccessControl, accessControl == nil {
      try modifyAccess(using: settings.access, flags: settings.flags)
    }
    try super.saveToKeychain()
  }

  override func load(_ item: Item?) {
    super.load(item)
    _accessControl.load(nil)
  }

  override func apply(to item: inout Item) throws(StoreError) {
    try super.apply(to: &item)
    _accessControl.ifSet { control in
      item.accessibility = control?.accessibility ?? item.accessibility
      item.access = control?.flags.accessFlags ?? []
    }
  }

  override func wasSaved() {
    super.wasSaved()
    _accessControl.wasSaved()
  }
}
