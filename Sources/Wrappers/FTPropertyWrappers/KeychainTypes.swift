public import CoreFoundation
import Live
import Model

/// When a wrapper looks at the keychain.
public enum KeychainDataRefreshPolicy: Sendable {
  /// Only when it is told to load, save or delete.
  case manual
  /// Whenever the value is read or set.
  case onAccess
}

/// Which of two attributes counts where both are set.
public enum KeychainQueryPresenceConstraint: Hashable, Sendable {
  case override(CFString)
  case overridenBy(CFString)
}

/// Why the keychain did not do what was asked.
public enum KeychainError: Error {
  case unexpectedFormat
  case generalEncodingFailure
  case generalDecodingFailure
  case loadSucceededWithoutData
  case accessControllErrorUnknown
  case accessControllError(status: any Error)
  case osSecure(status: OSStatus)
  case osSecureDuplicitItem
  case osSecureNoSuchItem
  case osSecureDiskFull
  case osSucureInvalidParameter
  case osSecureBadRequest
  case osSecureUserCancelledAuthentication
  case osSecureMissingEtitlementForThisFeature
  case osSecureInvalidValue

  init(_ error: StoreError) {
    self =
      switch error {
      case .exists: .osSecureDuplicitItem
      case .notFound: .osSecureNoSuchItem
      case .noSpace: .osSecureDiskFull
      case .invalidName, .nameTooLong, .notUnicode, .tooLarge: .osSucureInvalidParameter
      case .unsupported: .osSecureBadRequest
      case .accessDenied, .interrupted: .osSecureUserCancelledAuthentication
      case .notPermitted: .osSecureMissingEtitlementForThisFeature
      case .invalidValue: .osSecureInvalidValue
      case .locked: .osSecure(status: errSecInteractionNotAllowed)
      case .readOnly: .osSecure(status: errSecReadOnly)
      case .damaged: .osSecure(status: errSecDecode)
      case .unreachable: .osSecure(status: errSecNotAvailable)
      case .outOfMemory: .osSecure(status: errSecAllocate)
      default: .osSecure(status: errSecIO)
      }
  }
}

/// One attribute of an item, from when it is loaded or set until it is saved.
@propertyWrapper
public final class QueryElement<T>: @unchecked Sendable {
  // What changes is behind the lock; a CFString is never changed.
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

  public var wrappedValue: T? {
    get { state.withLock { $0.value } }
    set { state.withLock { $0 = (newValue, !isReadOnly) } }
  }

  /// What is stored; there is nothing to save.
  func load(_ value: T?) { state.withLock { $0 = (value, false) } }

  /// Calls `body` with the value where it was set since it was loaded; nil then means “remove it”.
  func ifSet(_ body: (T?) -> Void) {
    let (value, isSet) = state.withLock { $0 }
    if isSet { body(value) }
  }

  func wasSaved() { state.withLock { $0.isSet = false } }
}
