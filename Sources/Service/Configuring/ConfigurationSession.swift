import Control
import KeychainSelection
import Model
import Platform
package import Store

/// The configuration for one command: what holds, and changes of the suite `keyhole` and of the vault.
package struct ConfigurationSession {
  /// The place where a change was stored.
  package enum Place: Sendable {
    case suite
    case vault
  }

  /// The configuration, for a person.
  package struct Found {
    package var configuration: Configuration
    /// Settings of the suite that are not followed.
    package var ignored: [SuiteConfiguration.Ignored]
    /// Whether what lies in the vault can't be read now.
    package var isSealedUnknown = false
  }

  private static let path = TreePath("keychain")
  private let session: TreeSession
  /// Whether the session is one of the vault, whichever keychain is shown.
  private let isOfVault: Bool
  /// The reason why the keychain can't be opened.
  private let failure: Failure?

  /// - Parameter key: to be changed. Where a Secret Service is opened is decided by the vault, so `plain-session` lies there
  ///   whichever keychain is shown.
  /// - Throws: `Failure` where the settings can't be opened.
  package init(for key: ConfigurationKey) throws {
    var failure: Failure?
    isOfVault = key == .plainSession
    session = try TreeSession(atTopOf: Self.path, isOfVault ? .vault : nil) { failure = $0 }
    self.failure = failure
  }

  /// The configuration of the running mount, else that of the next one.
  ///
  /// It asks for no passphrase: of a vault that is locked, and that no mount has open, the settings are not known.
  package static func fetch() throws -> Found {
    let session = try TreeSession(silentlyFor: path)
    let suite = SuiteConfiguration(in: session.stores.settings)
    let runtime = try StoragePaths.current().runtime
    let mount = MountRegistration.all(in: runtime).last { $0.isAlive && !$0.isStopped }
    if let mount, let running = try? RunningMount(mount) {
      return Found(configuration: running.configuration, ignored: suite.ignored)
    }
    var sealed = (try? session.stores.keychain?.sealedConfiguration()) ?? [:]
    if sealed[.plainSession] == nil { sealed[.plainSession] = plainSessionInVault() }
    return Found(
      configuration: Configuration(sealed: sealed, suite: suite.values), ignored: suite.ignored,
      isSealedUnknown: session.isSealedUnknown)
  }

  /// Of the vault beside a Secret Service; nil: it has none, or is locked.
  private static func plainSessionInVault() -> SettingValue? {
    let session = try? TreeSession(silentlyFor: path, .vault)
    return try? session?.stores.keychain?.sealedConfiguration()[.plainSession]
  }

  /// Whether what lies in the vault can't be read now.
  package var isSealedUnknown: Bool { session.isSealedUnknown }

  /// Sets a key: in the suite, or in the vault where the value lies there only, where the key lies there already, or where
  /// `inVault` says so.
  ///
  /// - Throws: `Failure` that names the key.
  package func set(_ key: ConfigurationKey, to words: [String], inVault: Bool) throws -> Place {
    let value = try attempt(key) { () throws(StoreError) in try key.value(reading: words) }
    if key == .authCommand, words != [""] { try MountOptions.requireProgram(key, words[0]) }
    if key == .browsers { for path in words where !path.isEmpty { try Self.requireBrowser(path) } }
    guard inVault || key.isForVault(value) || isSealed(key) else {
      try attempt(key) { () throws(StoreError) in try store(value, key) }
      return .suite
    }
    let isNew = !key.isForVault(value) && !isSealed(key)
    try changeVault(key, to: value)
    if isNew { RuleChange.warn(of: "a later change of this setting", in: session.stores.keychain) }
    return .vault
  }

  /// - Throws: `Failure` for a program that would not count as a browser (`BrowserList`): one that its user can change.
  private static func requireBrowser(_ path: String) throws {
    guard path.hasPrefix("/") else { throw Failure(path, "a browser is named by its absolute path") }
    guard !path.utf8.contains(UInt8(ascii: "*")) else { return }
    // One that is missing may be installed later.
    guard let status = try? Files.status(path) else { return }
    guard status.isRegular, status.owner == 0, status.permissions & 0o022 == 0 else {
      throw Failure(
        path, "it would have no effect: only programs count that root owns and that only root can write")
    }
  }

  /// Adds a program to a list of programs.
  ///
  /// - Throws: `Failure` that names the key.
  package func add(_ program: String, to key: ConfigurationKey) throws {
    // A list that can't be read now must not be replaced.
    let sealed = try attempt(key) { () throws(StoreError) in
      try session.stores.keychain?.sealedConfiguration() ?? [:]
    }
    let suite = SuiteConfiguration(in: session.stores.settings)
    let present = Configuration(sealed: sealed, suite: suite.values).list(key)
    guard !present.contains(program) else { return }
    _ = try set(key, to: present + [program], inVault: false)
  }

  /// Removes a key from the suite and from the vault: the default holds again.
  ///
  /// - Throws: `Failure` that names the key.
  package func unset(_ key: ConfigurationKey) throws {
    if isSealed(key) { try changeVault(key, to: nil) }
    try attempt(key) { () throws(StoreError) in try store(nil, key) }
  }

  private func isSealed(_ key: ConfigurationKey) -> Bool {
    (try? session.stores.keychain?.sealedConfiguration())?[key] != nil
  }

  private func changeVault(_ key: ConfigurationKey, to value: SettingValue?) throws {
    if let failure { throw failure }
    if isOfVault, try !Files.exists(StoragePaths.ofMount().vault + "/vault.db") {
      throw Failure(
        key.rawValue,
        "there is no vault to keep it, and a Secret Service keeps no setting that protects less; "
          + "`keyhole mount -o plain-session` takes such a service for one mount")
    }
    guard let keychain = session.stores.keychain else {
      throw Failure(
        key.rawValue,
        "no keychain is shown, and only a vault keeps settings that protect less than the default")
    }
    do {
      try session.attempt(Self.path) { () throws(StoreError) in
        let permit = try keychain.permission(toChange: key, to: value, by: session.caller).fetch()
        try keychain.configure(key, to: value, permit)
      }
    } catch var failure as Failure {
      failure.subject = key.rawValue
      throw failure
    }
    if !isOfVault { session.stores.settleKeychain() }
  }

  private func store(_ value: SettingValue?, _ key: ConfigurationKey) throws(StoreError) {
    let (settings, name) = (session.stores.settings, SuiteConfiguration.suite)
    if try settings.existingSuite(name) == nil {
      guard value != nil else { return }
      do throws(StoreError) { try settings.createSuite(name) } catch {
        // Another process may make it in the same moment.
        guard error == .exists, try settings.existingSuite(name) != nil else { throw error }
      }
    }
    try settings.suite(name).update { $0.settings[ExactString(key.rawValue)] = value.map { Setting($0) } }
  }

  private func attempt<Value>(
    _ key: ConfigurationKey, _ body: () throws(StoreError) -> Value
  ) throws -> Value {
    do throws(StoreError) { return try body() } catch { throw Failure(key.rawValue, error) }
  }
}

extension TreeSession {
  fileprivate var isSealedUnknown: Bool {
    guard let keychain = stores.keychain, keychain.engine.authenticatesItems else { return false }
    return (try? keychain.sealedConfiguration()) == nil
  }
}
