public import Foundation
import Model
package import WrapperCore

/// An error of the keychain. `localizedDescription` says what failed and what to do.
///
/// The cases are matched without their reasons: `catch KeychainError.osSecureBadRequest`.
public enum KeychainError: Error {
  case unexpectedFormat
  /// The value has no form that can be stored.
  case generalEncodingFailure
  /// The stored bytes don't read as the property's type.
  case generalDecodingFailure
  case loadSucceededWithoutData
  case accessControllErrorUnknown
  /// The access control can't be made: its protection or one of its flags does not exist.
  case accessControllError(status: any Error)
  /// Any other error of the keychain, with the number that Apple's keychain has for it.
  case osSecure(status: OSStatus)
  /// `errSecDuplicateItem`: an item with the same primary key exists.
  case osSecureDuplicitItem
  /// `errSecItemNotFound`: no item has these attributes.
  case osSecureNoSuchItem
  /// `errSecDiskFull`: the disk or the quota is full.
  case osSecureDiskFull
  /// `errSecParam`: a name is not valid or too long, or the value too large.
  case osSucureInvalidParameter(Reason)
  /// `errSecBadReq`: the keychain does not support the request.
  case osSecureBadRequest(Reason)
  /// `errSecUserCanceled`: access was denied, or the question was not answered in time.
  case osSecureUserCancelledAuthentication(Reason)
  /// `errSecMissingEntitlement`: the operation is not permitted.
  case osSecureMissingEtitlementForThisFeature(Reason)
  /// The value can't be stored in the attribute or as the secret.
  case osSecureInvalidValue(Reason)

  /// The keychain's message. It never holds a value.
  public struct Reason: Hashable, Sendable {
    let text: String
  }
}

// The cases as they stand in expressions.
extension KeychainError {
  /// `errSecParam`: a name is not valid or too long, or the value too large. Matches every error of that case.
  public static var osSucureInvalidParameter: KeychainError {
    .osSucureInvalidParameter(Reason(text: "a parameter can't be used"))
  }
  /// `errSecBadReq`: the keychain does not support the request. Matches every error of that case.
  public static var osSecureBadRequest: KeychainError {
    .osSecureBadRequest(Reason(text: "the keychain can't do that"))
  }
  /// `errSecUserCanceled`: the user refused, or did not answer in time. Matches every error of that case.
  public static var osSecureUserCancelledAuthentication: KeychainError {
    .osSecureUserCancelledAuthentication(Reason(text: "access was denied"))
  }
  /// `errSecMissingEntitlement`: the operation is not permitted. Matches every error of that case.
  public static var osSecureMissingEtitlementForThisFeature: KeychainError {
    .osSecureMissingEtitlementForThisFeature(Reason(text: "this is not permitted"))
  }
  /// The value can't be stored in the attribute or as the secret. Matches every error of that case.
  public static var osSecureInvalidValue: KeychainError {
    .osSecureInvalidValue(Reason(text: "the value can't be used"))
  }
}

extension KeychainError {
  init(_ error: StoreError) {
    let reason = Reason(text: error.message)
    self =
      switch error {
      case .noCollection: .osSecure(status: errSecNoDefaultKeychain)
      case .exists: .osSecureDuplicitItem
      case .notFound: .osSecureNoSuchItem
      case .noSpace, .quotaExceeded: .osSecureDiskFull
      case .invalidName, .nameTooLong, .notUnicode, .tooLarge: .osSucureInvalidParameter(reason)
      case .unsupported: .osSecureBadRequest(reason)
      case .accessDenied, .interrupted, .timedOut: .osSecureUserCancelledAuthentication(reason)
      case .notPermitted: .osSecureMissingEtitlementForThisFeature(reason)
      case .invalidValue: .osSecureInvalidValue(reason)
      case .locked: .osSecure(status: errSecInteractionNotAllowed)
      case .rejected, .revoked: .osSecure(status: errSecAuthFailed)
      case .readOnly: .osSecure(status: errSecReadOnly)
      case .damaged: .osSecure(status: errSecDecode)
      case .unreachable: .osSecure(status: errSecNotAvailable)
      case .outOfMemory: .osSecure(status: errSecAllocate)
      default: .osSecure(status: errSecIO)
      }
  }
}

extension KeychainError: CustomStringConvertible {
  /// The name of the case, as the original prints it.
  public var description: String {
    switch self {
    case .unexpectedFormat: "unexpectedFormat"
    case .generalEncodingFailure: "generalEncodingFailure"
    case .generalDecodingFailure: "generalDecodingFailure"
    case .loadSucceededWithoutData: "loadSucceededWithoutData"
    case .accessControllErrorUnknown: "accessControllErrorUnknown"
    case .accessControllError(let status): "accessControllError(status: \(status))"
    case .osSecure(let status): "osSecure(status: \(status))"
    case .osSecureDuplicitItem: "osSecureDuplicitItem"
    case .osSecureNoSuchItem: "osSecureNoSuchItem"
    case .osSecureDiskFull: "osSecureDiskFull"
    case .osSucureInvalidParameter: "osSucureInvalidParameter"
    case .osSecureBadRequest: "osSecureBadRequest"
    case .osSecureUserCancelledAuthentication: "osSecureUserCancelledAuthentication"
    case .osSecureMissingEtitlementForThisFeature: "osSecureMissingEtitlementForThisFeature"
    case .osSecureInvalidValue: "osSecureInvalidValue"
    }
  }
}

extension KeychainError: LocalizedError, LoggedError {
  /// The failure and its remedy, for `localizedDescription`. It never holds a value.
  public var errorDescription: String? { logText }

  package var logText: String {
    switch self {
    case .unexpectedFormat: "what is stored has another format"
    case .generalEncodingFailure: "the value has no form that can be stored"
    case .generalDecodingFailure: "what is stored does not read as the property's type"
    case .loadSucceededWithoutData: "the item has no secret"
    case .accessControllErrorUnknown: "the access control can't be made"
    case .accessControllError(let status):
      "the access control can't be made: \((status as? any LoggedError)?.logText ?? "\(status)")"
    case .osSecure(let status): Self.text(status)
    case .osSecureDuplicitItem: "there is such an item already"
    case .osSecureNoSuchItem: "there is no such item"
    case .osSecureDiskFull: StoreError.noSpace.message
    case .osSucureInvalidParameter(let reason), .osSecureBadRequest(let reason),
      .osSecureUserCancelledAuthentication(let reason), .osSecureMissingEtitlementForThisFeature(let reason),
      .osSecureInvalidValue(let reason):
      reason.text
    }
  }

  private static func text(_ status: OSStatus) -> String {
    switch status {
    case errSecNoDefaultKeychain: StoreError.noCollection.message
    case errSecInteractionNotAllowed: StoreError.locked.message
    case errSecAuthFailed:
      "the password is wrong, or other fingers are enrolled than when the item was stored"
    case errSecReadOnly: "the keychain is read-only; `keyhole doctor` says why"
    case errSecDecode: "the keychain is damaged; `keyhole doctor --secrets` says more"
    case errSecNotAvailable: "the keychain can't be reached; `keyhole status` says which one it is"
    case errSecAllocate: StoreError.outOfMemory.message
    default: "the keychain failed with the status \(status)"
    }
  }
}
