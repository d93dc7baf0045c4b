import Control
import Model
import Platform
import PromptHelper
import Prompting
import Store
import Synchronization

/// The configuration of a mount as it is at the moment: its options, what lies in its vault, and the suite `keyhole`.
final class MountConfiguration: Sendable {
  private let options: [ConfigurationKey: SettingValue]
  private let state = Mutex(State())
  /// Of the requests that wait with either controller, in any process of the user.
  private let numbers: RequestNumbers

  private struct State {
    var settings: SettingsStore?
    var keychain: KeychainStore?
    var device: (@Sendable () -> [UInt8])?
    /// As it was read last: it holds while the vault is locked.
    var sealed: [ConfigurationKey: SettingValue] = [:]
  }

  /// Until ``follow(_:)`` the options alone hold.
  init(_ options: MountOptions, _ places: StoragePaths) {
    self.options = options.settings
    numbers = RequestNumbers(file: places.runtime + "/request-number")
  }

  /// From now on the stores' settings hold too.
  func follow(_ stores: Stores) {
    state.withLock { ($0.settings, $0.keychain) = (stores.settings, stores.keychain) }
  }

  /// The record of this device, where the items are those of a cluster: a person proves to be its user by its passphrase.
  func follow(device: @escaping @Sendable () -> [UInt8]) { state.withLock { $0.device = device } }

  fileprivate var device: [UInt8]? { state.withLock { $0.device }?() }

  /// The settings of the suite, and those of it that are not followed.
  var suite: SuiteConfiguration {
    state.withLock { $0.settings }.map { SuiteConfiguration(in: $0) } ?? SuiteConfiguration(nil)
  }

  /// The settings that hold now. It looks at the suite's file, and at the vault's item.
  var present: Configuration {
    let keychain = state.withLock { $0.keychain }
    let read = keychain.flatMap { try? $0.sealedConfiguration() }
    let sealed = state.withLock { state in
      if let read { state.sealed = read }
      return state.sealed
    }
    return Configuration(options: options, sealed: sealed, suite: suite.values)
  }
}

// MARK: - Controllers

extension MountConfiguration {
  /// The controller of access to guarded secrets.
  func accessController(_ places: StoragePaths, _ record: AccessLog) -> AccessController {
    let browsers = BrowserFile.list
    return AccessController(
      ConfiguredAuthenticator(self, places),
      { [self] in
        var options = AccessController.Options()
        let present = present
        (options.timeout, options.reuse) = (present.number(.authTimeout), present.number(.authReuse))
        (options.keepsSessions, options.listsRequests) = (true, present.isOn(.authRequests))
        options.browsers = browsers.adding(present.list(.browsers))
        options.presenceByButton = present.isOn(.presenceButton)
        options.onListed = { DesktopNotification.show(for: $0) }
        options.factors = { [self] in factors }
        return options
      }, record: record, numbers: numbers)
  }

  /// The proofs that a person can give here; a program of `auth-command` decides by itself.
  private var factors: ApprovalFactors {
    guard present.text(.authCommand) == nil, let keychain = state.withLock({ $0.keychain }) else {
      return .all
    }
    return .ofMachine(keychain)
  }

  /// The controller of questions for the passphrase.
  func unlockController(_ places: StoragePaths) -> UnlockController {
    let browsers = BrowserFile.list
    return UnlockController(
      ConfiguredAuthenticator(self, places),
      { [self] in
        var options = UnlockController.Options()
        let present = present
        (options.timeout, options.asks) = (present.number(.authTimeout), present.isOn(.askUnlock))
        options.browsers = browsers.adding(present.list(.browsers))
        options.listsRequests = present.isOn(.authRequests)
        options.onListed = { DesktopNotification.show(for: $0) }
        return options
      }, numbers: numbers)
  }
}

/// Has the program of `auth-command` asked where there is one, else a person.
private struct ConfiguredAuthenticator: Authenticator {
  private let configuration: MountConfiguration
  private let person: HelperAuthenticator

  init(_ configuration: MountConfiguration, _ places: StoragePaths) {
    self.configuration = configuration
    person = HelperAuthenticator(vault: places.vault, state: places.state) { [weak configuration] in
      configuration?.device
    }
  }

  func ask(_ question: Question, _ withdrawal: Withdrawal) -> Answer {
    guard let program = configuration.present.text(.authCommand) else {
      return person.ask(question, withdrawal)
    }
    return CommandAuthenticator(program: program).ask(question, withdrawal)
  }

  func withTries<Value>(_ body: (_ ask: @escaping (Question, Withdrawal) -> Answer) -> Value) -> Value {
    configuration.present.text(.authCommand) == nil ? person.withTries(body) : body(ask)
  }
}

extension BrowserList {
  fileprivate func adding(_ further: [String]) -> BrowserList { BrowserList(paths + further) }
}
