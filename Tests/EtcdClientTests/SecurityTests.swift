import EtcdHarness
import Platform
import SecretMemory
import Testing

@testable import EtcdClient

/// TLS, certificates, users and tokens.
@Suite(.timeLimit(.minutes(2))) struct SecurityTests {
  private func secureNodes(_ arguments: [String] = []) throws -> EtcdNodes {
    var options = EtcdNodes.Options()
    options.isSecure = true
    options.arguments = arguments
    return try EtcdNodes(options)
  }

  private func login(_ user: String, _ password: String) throws -> EtcdLogin {
    let bytes = Array(password.utf8)
    return EtcdLogin(user: user, password: try SecretBytes(copying: bytes.span))
  }

  /// Users `root` and `fleet`, of whom the second may use keys that begin with `f/`.
  private func enableUsers(_ nodes: EtcdNodes) throws {
    for words in [
      "user add root:rootpw", "user add fleet:fleetpw", "role add fleet",
      "role grant-permission fleet --prefix=true readwrite f/", "user grant-role fleet fleet",
      "user grant-role root root", "auth enable",
    ] { try nodes.etcdctl(words) }
  }

  @Test func certificatesOfBothSidesAreChecked() throws {
    let nodes = try secureNodes()
    let cluster = nodes.client()
    try cluster.put("k", "1")
    for _ in 0..<50 { #expect(try cluster.get("k") == "1") }
    let reports = Collector<WatchReport>()
    let watch = cluster.watch(KeyRange(key: [0x6B]), from: 0) { reports.add($0) }
    defer { watch.cancel() }
    #expect(reports.wait { !$0.isEmpty })
    try cluster.put("k", "2")
    #expect(reports.wait { _ in reports.changes.count == 1 })

    func fails(_ security: TransportSecurity?, _ endpoints: [EtcdEndpoint]? = nil) -> Bool {
      var configuration = EtcdCluster.Configuration(endpoints: endpoints ?? cluster.configuration.endpoints)
      configuration.security = security
      configuration.deadline = .seconds(2)
      let other = EtcdCluster(configuration)
      return error { () throws(ClusterError) in _ = try other.get("k") }?.isUnavailable == true
    }
    let good = nodes.security(of: "client")
    #expect(!fails(good))
    // The message says why.
    let alone = nodes.client { $0.security = TransportSecurity() }
    let refusal = error { () throws(ClusterError) in _ = try alone.get("k") }
    #expect("\(String(describing: refusal))".contains("certificate"), "\(String(describing: refusal))")
    // No certificate; an authority that did not sign the servers'; that of the system; a name that is not the servers'.
    #expect(fails(TransportSecurity(authorities: good.authorities)))
    let foreign = try secureNodes()
    var wrong = good
    wrong.authorities = foreign.security(of: "client").authorities
    #expect(fails(wrong))
    #expect(fails(nil))
    let port = nodes.clientPorts[0]
    #expect(!fails(good, [try #require(EtcdEndpoint("localhost:\(port)", isSecure: true))]))
    #expect(fails(good, [try #require(EtcdEndpoint("127.0.0.2:\(port)", isSecure: true))]))
    // A key with a passphrase, for which nothing asks.
    var sealed = good
    sealed.key = "\(nodes.folder)/sealed.key"
    try Program.run([
      "openssl", "ec", "-in", "\(nodes.folder)/client.key", "-out", "\(nodes.folder)/sealed.key", "-aes256",
      "-passout",
      "pass:secret",
    ])
    #expect(fails(sealed))
    // Clear text to servers with TLS.
    #expect(fails(nil, [try #require(EtcdEndpoint("127.0.0.1:\(port)", isSecure: false))]))
  }

  @Test func commonNameOfTheCertificateIsTheUser() throws {
    let nodes = try secureNodes()
    try enableUsers(nodes)
    let fleet = nodes.client { $0.security = nodes.security(of: "fleet") }
    try fleet.put("f/a", "1")
    #expect(try fleet.get("f/a") == "1")
    #expect(error { () throws(ClusterError) in try fleet.put("g/a", "1") }?.isUnauthorized == true)
    let stranger = nodes.client()
    #expect(error { () throws(ClusterError) in _ = try stranger.get("f/a") }?.isUnauthorized == true)
  }

  @Test func passwordIsSentForATokenThatExpired() throws {
    var options = EtcdNodes.Options()
    options.arguments = ["--auth-token-ttl", "1"]
    let nodes = try EtcdNodes(options)
    try enableUsers(nodes)
    let cluster = nodes.client { $0.login = try? login("fleet", "fleetpw") }
    try cluster.put("f/a", "0")
    let user = try #require(cluster.configuration.login)
    var tokens: Set<String> = []
    // The servers forget a token that was not used for a second: some of these calls come later than that.
    for pause in [0, 2_500_000, 2_500_000] as [UInt32] {
      Pause.microseconds(pause)
      try cluster.put("f/a", "\(pause)")
      tokens.insert(user.current?.text ?? "")
    }
    #expect(tokens.count > 1)
    user.set(EtcdLogin.Token(text: "made.up"))
    #expect(try cluster.get("f/a") == "2500000")
    #expect(error { () throws(ClusterError) in try cluster.put("g/a", "1") }?.isUnauthorized == true)
  }

  @Test func wrongPasswordIsRefusedAtOnce() throws {
    let nodes = try EtcdNodes()
    try enableUsers(nodes)
    for (user, password) in [("fleet", "wrong"), ("stranger", "x")] {
      let cluster = nodes.client { $0.login = try? login(user, password) }
      let time = elapsed {
        #expect(error { () throws(ClusterError) in try cluster.put("f/a", "1") }?.isUnauthorized == true)
      }
      #expect(time < .seconds(3))
    }
    // Without any.
    let cluster = nodes.client()
    let refusal = error { () throws(ClusterError) in try cluster.put("f/a", "1") }
    #expect(refusal?.isUnauthorized == true, "\(String(describing: refusal))")
  }

  @Test func watchOfAUserGoesOnWithANewToken() throws {
    let nodes = try EtcdNodes()
    try enableUsers(nodes)
    let cluster = nodes.client { $0.login = try? login("fleet", "fleetpw") }
    let reports = Collector<WatchReport>()
    let watch = cluster.watch(KeyRange(prefix: Array("f/".utf8)), from: 0) { reports.add($0) }
    defer { watch.cancel() }
    #expect(reports.wait { !$0.isEmpty })
    // A token that nothing knows, with the next stream.
    let server = try #require(cluster.watchedServers.first)
    cluster.configuration.login?.set(EtcdLogin.Token(text: "made.up"))
    nodes.kill(server)
    let other = nodes.client { $0.login = try? login("fleet", "fleetpw") }
    let deadline = ContinuousClock.now + .seconds(20)
    while error({ () throws(ClusterError) in try other.put("f/a", "1") }) != nil, deadline > .now {}
    #expect(reports.wait { _ in reports.changes.last?.hasSuffix("f/a=1") == true })
    #expect(!reports.texts.contains("refused"))

    let forbidden = Collector<WatchReport>()
    let refused = cluster.watch(KeyRange(prefix: Array("g/".utf8)), from: 0) { forbidden.add($0) }
    defer { refused.cancel() }
    #expect(forbidden.wait { _ in forbidden.texts.last == "refused" })
  }

  @Test func environmentIsNotUsed() throws {
    let nodes = try EtcdNodes()
    let closed = try FreePorts.find(1)[0]
    for name in ["http_proxy", "https_proxy", "ALL_PROXY"] {
      Environment.set(name, to: "http://127.0.0.1:\(closed)")
    }
    defer { for name in ["http_proxy", "https_proxy", "ALL_PROXY"] { _ = Environment.remove(name) } }
    let cluster = nodes.client()
    #expect(error { () throws(ClusterError) in try cluster.put("k", "1") } == nil)
  }
}
