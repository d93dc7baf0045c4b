public import DefaultKeychain
public import FoundationEssentials
package import WrapperCore

/// Where `@KeychainStorage` keeps its data: Keyhole's `Keychain`, or a type of your own.
public protocol KeychainProvider {
  /// Stores data; false: it could not, and the property keeps its old value.
  func setData(_ data: Data, forKey key: String) -> Bool
  /// The data of a key; nil: there is none, or it can't be read.
  func getData(forKey key: String) -> Data?
  /// Removes a key; false: it could not.
  func deleteData(forKey key: String) -> Bool
}

/// A provider that reports every change, also those of other processes.
package protocol WatchedProvider: KeychainProvider {
  /// As `getData(forKey:)`; nil: there is none. - Throws: why the data can't be read.
  func secret(forKey key: String) throws -> Data?
  /// Stores data where the key has none, in one step, and leaves what is there. false: it could not.
  func setFirstData(_ data: Data, forKey key: String) -> Bool
  /// Calls `look` after each change, before the call that made it returns.
  func listen(_ look: @escaping @Sendable () -> Void) -> Listening
}

extension Keychain: KeychainProvider {
  /// Stores the secret of the generic item whose account is `key`. false: that failed, and the error is logged.
  public func setData(_ data: Data, forKey key: String) -> Bool {
    attempt(key) { try setSecret(data, forKey: key) } != nil
  }

  /// The secret of the generic item whose account is `key`; nil: there is none, or an error that is logged.
  public func getData(forKey key: String) -> Data? {
    attempt(key) { try secret(forKey: key) } ?? nil
  }

  /// Deletes the generic item whose account is `key`, if there is one. false: that failed, and the error is logged.
  public func deleteData(forKey key: String) -> Bool {
    attempt(key) { try setSecret(nil, forKey: key) } != nil
  }

  package func setFirstData(_ data: Data, forKey key: String) -> Bool {
    attempt(key) { try setFirstSecret(data, forKey: key) } != nil
  }

  /// The item of a key, for the log.
  package func subject(_ key: String) -> String { "keychain/generic/\(service)/\(key)" }

  private func attempt<Result>(_ key: String, _ body: () throws -> Result) -> Result? {
    do {
      return try body()
    } catch {
      Log.note(subject(key), error)
      return nil
    }
  }
}

extension Keychain: WatchedProvider {}
