internal import Model
import Platform

/// The attributes that are an item's identity, by the names behind `user.`.
enum IdentityAttribute: String, CaseIterable {
  case service
  case account
  case server
  case domain
  case `protocol`
  case authenticationType
  case port
  case path

  /// nil: no class has an attribute of this name. Compared by bytes: it is asked for with each getxattr(2).
  init?(_ name: Span<UInt8>) {
    guard let found = Self.allCases.first(where: { name.hasSameBytes(as: $0.rawValue.utf8.span) }) else {
      return nil
    }
    self = found
  }

  /// nil: items of the class have no such attribute; nil in it: this item has none.
  func value(in identity: ItemIdentity) -> ExactString?? {
    switch identity {
    case .generic(let service, let account):
      switch self {
      case .service: service
      case .account: account
      default: nil
      }
    case .internet(let internet): value(in: internet)
    case .other: nil
    }
  }

  /// Whether the item has it.
  func isPresent(in identity: ItemIdentity) -> Bool {
    guard let value = value(in: identity) else { return false }
    return value != nil
  }

  private func value(in internet: InternetIdentity) -> ExactString?? {
    switch self {
    case .service: nil
    case .account: internet.account
    case .server: internet.server
    case .domain: .some(internet.domain)
    case .protocol: .some(internet.protocol)
    case .authenticationType: .some(internet.authenticationType)
    case .port: .some(internet.port.map { ExactString($0.description) })
    case .path: .some(internet.path)
    }
  }
}
