public import WrapperCore

/// A property that is kept in a keychain as JSON:
/// `@KeychainStorage(provider: Keychain.standard, key: "token") private var token: String? = nil`.
///
/// All properties of one key, type and `Keychain` have the same value, whichever sets it; with providers of your own,
/// all properties of one key and type. Code that reads one under Observation is notified of every change.
@propertyWrapper
public struct KeychainStorage<Value: Sendable & Equatable & Codable, Provider: KeychainProvider> {
  private let entry: StoredEntry<Value>

  /// - Parameters:
  ///   - wrappedValue: the first value, which is stored where the key has none.
  ///   - keychainProvider: stores the data.
  ///   - key: the key.
  public init(wrappedValue: Value, keychainProvider: Provider, key: String) {
    entry = StoredEntry(key, first: wrappedValue, provider: keychainProvider)
    entry.begin()
  }

  /// As `init(wrappedValue:keychainProvider:key:)`, by the name that the documentation has always had.
  public init(wrappedValue: Value, provider: Provider, key: String) {
    self.init(wrappedValue: wrappedValue, keychainProvider: provider, key: key)
  }

  /// Setting an optional to nil deletes the key. A value that can't be stored leaves the old one.
  public var wrappedValue: Value {
    get { entry.value }
    nonmutating set { entry.set(newValue) }
  }

  /// The changes of the value (`values`), and the last error (`error`).
  public var projectedValue: LiveProjection<Value> {
    LiveProjection(
      value: { [entry] in entry.value }, error: { [entry] in entry.error },
      values: LiveSequence { [entry] in entry.follow($0) })
  }
}

extension KeychainStorage: Sendable where Provider: Sendable {}
