import Glibc
import Model
import SecretService
import Store
import Vault

/// The keychain that a choice leads to, and why it is that one.
struct OpenedKeychain {
  let engine: (any KeychainEngine)?
  /// For `keyhole status`.
  let explanation: String
}

/// How the keychain of the user is opened.
struct KeychainOpening {
  var choice = KeychainChoice.automatic
  /// Also a Secret Service whose sessions are not encrypted.
  var allowsPlainSession = false

  /// How long a Secret Service may take to be chosen by `auto`, in milliseconds: nobody shall wait for it.
  private static let patience = 80
  /// How long one that was asked for may take, in milliseconds.
  private static let longPatience = 5_000

  /// - Throws: `Failure` with what to do where the keychain can't be opened.
  func open(_ places: Places) throws -> OpenedKeychain {
    switch choice {
    case .none: return OpenedKeychain(engine: nil, explanation: "none, as `keychain=none` says")
    case .vault: return try vault(places, "as `keychain=vault` says")
    case .secretService:
      do throws(StoreError) {
        let engine = try service(within: Self.longPatience)
        return OpenedKeychain(
          engine: engine, explanation: "the Secret Service, as `keychain=secret-service` says")
      } catch {
        throw Failure("Secret Service", error)
      }
    case .automatic: return try automatic(places)
    }
  }

  private func automatic(_ places: Places) throws -> OpenedKeychain {
    do throws(StoreError) {
      let engine = try service(within: Self.patience)
      return OpenedKeychain(
        engine: engine, explanation: "the Secret Service, because one answers on the session bus")
    } catch {
      return try vault(places, "because there is no Secret Service to be used: \(error.reason)")
    }
  }

  /// A service that has answered.
  private func service(within milliseconds: Int) throws(StoreError) -> SecretServiceEngine {
    guard let address = unsafe getenv("DBUS_SESSION_BUS_ADDRESS").map({ unsafe String(cString: $0) }),
      !address.isEmpty
    else { throw .unreachable(reason: "there is no session bus; DBUS_SESSION_BUS_ADDRESS is not set") }
    let engine = try SecretServiceEngine(address: address, allowsPlain: allowsPlainSession)
    try engine.connect(within: milliseconds)
    return engine
  }

  private func vault(_ places: Places, _ reason: String) throws -> OpenedKeychain {
    do throws(StoreError) {
      let engine = try VaultEngine(directory: places.vault, stateDirectory: places.state)
      return OpenedKeychain(engine: engine, explanation: "vault, \(reason)")
    } catch {
      throw Failure(places.vault, error)
    }
  }
}

extension KeychainOpening {
  private static let plain = "+plain-session"

  /// The keychain of the running mount, else as `auto`.
  static func present(_ places: Places) -> KeychainOpening {
    MountRecord.all(places).last { $0.isAlive }?.keychain ?? KeychainOpening()
  }

  /// Without `auto`: what was chosen, by the engine's name.
  func settled(on engine: String?) -> KeychainOpening {
    var settled = self
    settled.choice = engine.flatMap(KeychainChoice.init) ?? .none
    return settled
  }

  /// For the note of a mount.
  var word: String { choice.rawValue + (allowsPlainSession ? Self.plain : "") }

  init(word: String) {
    allowsPlainSession = word.hasSuffix(Self.plain)
    let choice = allowsPlainSession ? String(word.dropLast(Self.plain.count)) : word
    self.choice = KeychainChoice(rawValue: choice) ?? .automatic
  }
}

extension StoreError {
  /// What is behind the message, without the words around it.
  fileprivate var reason: String {
    switch self {
    case .unreachable(let reason), .notPermitted(let reason): reason
    default: message
    }
  }
}

/// The mount option `keychain=`.
enum KeychainChoice: String, CaseIterable {
  case automatic = "auto"
  case secretService = "secret-service"
  case vault
  case none
}
