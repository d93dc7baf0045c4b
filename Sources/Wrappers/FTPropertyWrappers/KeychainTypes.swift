import WrapperCore

/// When a wrapper reads and writes the keychain.
public enum KeychainDataRefreshPolicy: Sendable {
  /// Only when `load`, `save` or `delete` is called.
  case manual
  /// Whenever the value is read or set.
  case onAccess
}

/// The precedence of two attributes that are both set.
public enum KeychainQueryPresenceConstraint: Hashable, Sendable {
  case override(CFString)
  case overridenBy(CFString)
}

/// One attribute of an item, from when it is loaded or set until it is saved.
@propertyWrapper
public final class QueryElement<T>: @unchecked Sendable {
  // The mutable state is behind the lock; a CFString is never changed.
  let key: CFString
  let constraints: Set<KeychainQueryPresenceConstraint>
  private let isReadOnly: Bool
  private let state = Guarded<(value: T?, isSet: Bool)>((nil, false))

  init(key: CFString, constraints: Set<KeychainQueryPresenceConstraint> = []) {
    self.key = key
    self.constraints = constraints
    isReadOnly = false
  }

  init(readOnlyKey key: CFString) {
    self.key = key
    constraints = []
    isReadOnly = true
  }

  /// The attribute as it was last loaded or set; nil: the item has none, or it is removed with the next save.
  ///
  /// A new value of an attribute that the keychain sets itself, such as the creation date, is not saved.
  public var wrappedValue: T? {
    get { state.withLock { $0.value } }
    set { state.withLock { $0 = (newValue, !isReadOnly) } }
  }

  /// Takes the stored value; there is nothing to save.
  func load(_ value: T?) { state.withLock { $0 = (value, false) } }

  /// Calls `body` with the value where it was set since it was loaded; nil then means “remove it”.
  func ifSet(_ body: (T?) -> Void) {
    let (value, isSet) = state.withLock { $0 }
    if isSet { body(value) }
  }

  func wasSaved() { state.withLock { $0.isSet = false } }
}
