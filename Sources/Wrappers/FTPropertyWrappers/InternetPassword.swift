import DefaultKeychain

/// An internet password: `@InternetPassword(server: "my.server", account: "me") var password: String?`.
///
/// A part that is left out matches any; of several items the oldest is used.
@propertyWrapper
open class InternetPassword<T: Codable>: KeychainItemPropertyWrapper<T>, @unchecked Sendable {
  /// The host name or address; nil: any.
  @QueryElement(key: kSecAttrServer) open private(set) var server: String?
  /// The item's account; nil: any.
  @QueryElement(key: kSecAttrAccount) open private(set) var account: String?
  /// The security domain; nil: any.
  @QueryElement(key: kSecAttrSecurityDomain) open private(set) var domain: String?
  /// One of the constants that begin with `kSecAttrProtocol`; nil: any.
  @QueryElement(key: kSecAttrProtocol) open private(set) var aProtocol: CFString?
  /// One of the constants that begin with `kSecAttrAuthenticationType`; nil: any.
  @QueryElement(key: kSecAttrAuthenticationType) open private(set) var authenticationType: CFString?
  /// The port; nil: any.
  @QueryElement(key: kSecAttrPort) open private(set) var port: UInt16?
  /// The path of a URL; nil: any.
  @QueryElement(key: kSecAttrPath) open private(set) var path: String?

  /// `aProtocol` is one of the constants that begin with `kSecAttrProtocol`, `authenticationType` one of those
  /// that begin with `kSecAttrAuthenticationType`.
  public init(
    server: String, account: String? = nil, domain: String? = nil, aProtocol: CFString? = nil,
    authenticationType: CFString? = nil, port: UInt16? = nil, path: String? = nil,
    refreshPolicy: KeychainDataRefreshPolicy = .onAccess, defaultValue: T? = nil
  ) {
    super.init(refreshPolicy: refreshPolicy, defaultValue: defaultValue)
    self.server = server
    self.account = account
    self.domain = domain
    self.aProtocol = aProtocol
    self.authenticationType = authenticationType
    self.port = port
    self.path = path
  }

  /// `kSecClassInternetPassword`.
  open override var itemClass: CFString { kSecClassInternetPassword }

  /// Account, security domain, server, protocol, authentication type, port and path.
  open override var primaryKey: Set<CFString> {
    [
      kSecAttrAccount, kSecAttrSecurityDomain, kSecAttrServer, kSecAttrProtocol, kSecAttrAuthenticationType,
      kSecAttrPort, kSecAttrPath,
    ]
  }

  override var query: ItemQuery {
    .internet(
      ItemQuery.InternetQuery(
        server: server, account: account, domain: domain,
        protocol: SecurityWords.protocols.word(aProtocol),
        authenticationType: SecurityWords.authenticationTypes.word(authenticationType), port: port,
        path: path))
  }

  open override var wrappedValue: T? {
    get { super.wrappedValue }
    set { super.wrappedValue = newValue }
  }

  /// The changes of the value (`values`), and the last error (`error`).
  public override var projectedValue: LiveProjection<T?> { super.projectedValue }
}
