package import Model

/// A pattern for items: an attribute that is nil matches any.
package enum ItemQuery: Hashable, Sendable {
  case generic(service: String?, account: String?)
  case internet(InternetQuery)

  package struct InternetQuery: Hashable, Sendable {
    package var server: String?
    package var account: String?
    package var domain: String?
    package var `protocol`: String?
    package var authenticationType: String?
    package var port: UInt16?
    package var path: String?

    /// Every internet password.
    package static let any = InternetQuery(
      server: nil, account: nil, domain: nil, protocol: nil, authenticationType: nil, port: nil, path: nil)

    package init(
      server: String?, account: String?, domain: String?, protocol: String?, authenticationType: String?,
      port: UInt16?, path: String?
    ) {
      self.server = server
      self.account = account
      self.domain = domain
      self.protocol = `protocol`
      self.authenticationType = authenticationType
      self.port = port
      self.path = path
    }
  }

  package func matches(_ identity: ItemIdentity) -> Bool {
    switch (self, identity) {
    case (.generic(let service, let account), .generic(let itemService, let itemAccount)):
      allows(service, itemService) && allows(account, itemAccount)
    case (.internet(let query), .internet(let item)): query.matches(item)
    default: false
    }
  }

  /// The path of a new item, for a question to the user.
  package var text: String {
    switch self {
    case .generic(let service, let account): "keychain/generic/\(service ?? "")/\(account ?? "")"
    case .internet(let query): "keychain/internet/\(query.server ?? "")/\(query.account ?? "")"
    }
  }

  /// The identity of a new item: an attribute that is nil is absent.
  package var identity: ItemIdentity {
    switch self {
    case .generic(let service, let account):
      .generic(service: ExactString(service ?? ""), account: ExactString(account ?? ""))
    case .internet(let query): .internet(query.identity)
    }
  }
}

extension ItemQuery.InternetQuery {
  fileprivate func matches(_ item: InternetIdentity) -> Bool {
    guard allows(server, item.server), allows(account, item.account), allows(domain, item.domain) else {
      return false
    }
    guard allows(self.`protocol`, item.`protocol`) else { return false }
    guard allows(authenticationType, item.authenticationType), allows(path, item.path) else { return false }
    return port == nil || port == item.port
  }

  fileprivate var identity: InternetIdentity {
    InternetIdentity(
      server: ExactString(server ?? ""), account: ExactString(account ?? ""),
      domain: domain.map { ExactString($0) }, protocol: self.`protocol`.map { ExactString($0) },
      authenticationType: authenticationType.map { ExactString($0) }, port: port,
      path: path.map { ExactString($0) })
  }
}

/// nil matches any.
private func allows(_ wanted: String?, _ text: ExactString?) -> Bool {
  guard let wanted else { return true }
  return text == ExactString(wanted)
}
