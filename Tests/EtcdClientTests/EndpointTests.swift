import Testing

@testable import EtcdClient

@Suite struct EndpointTests {
  @Test(arguments: [
    ("a.example", "a.example:2379"), ("a.example:1", "a.example:1"), ("10.0.0.1:65535", "10.0.0.1:65535"),
    ("[::1]", "[::1]:2379"), ("[fe80::1]:2380", "[fe80::1]:2380"),
  ])
  func hostAndPortAreRead(_ text: String, _ expected: String) {
    let endpoint = EtcdEndpoint(text, isSecure: true)
    #expect(endpoint?.description == expected)
    #expect(endpoint?.address == "https://\(expected)")
  }

  @Test(arguments: [
    "", ":2379", "a:0", "a:65536", "a:x", "a:+1", "a b", "a/b", "a@b", "user:pw@a:1", "a?x", "a#x", "[]",
    "[::1", "::1",
    "a:1:2", "[a/b]", "http://a", "ä.example", "a%41",
  ])
  func anythingElseIsRefused(_ text: String) {
    #expect(EtcdEndpoint(text, isSecure: false) == nil)
  }

  @Test func serversAreAskedInTurn() {
    var health = EndpointHealth(count: 3, first: 4)
    #expect(health.order() == [1, 2, 0])
    let now = ContinuousClock.now
    health.failed(1, at: now)
    #expect(health.order(at: now) == [2, 0, 1])
    health.failed(2, at: now)
    #expect(health.order(at: now) == [0, 1, 2])
    health.failed(0, at: now)
    // All are asked where none is known to work.
    #expect(Set(health.order(at: now)) == [0, 1, 2])
  }

  @Test func serverThatFailedIsAskedLaterAgain() {
    var health = EndpointHealth(count: 2, first: 0)
    let now = ContinuousClock.now
    health.failed(0, at: now)
    health.failed(1, at: now)
    health.succeeded(0)
    #expect(health.order(at: now) == [0, 1])
    #expect(health.order(at: now + .seconds(20)) == [0, 1])
  }

  @Test func pausesGrowToALimitWithARandomPart() {
    var backoff = Backoff(first: .milliseconds(100), longest: .seconds(1))
    let longest = (0..<6).map { _ in backoff.pause { 1 } }
    #expect(
      longest == [
        .milliseconds(100), .milliseconds(200), .milliseconds(400), .milliseconds(800), .seconds(1),
        .seconds(1),
      ])
    backoff.reset()
    #expect(backoff.pause { 0.5 } == .milliseconds(50))
    let pauses = Set((0..<20).map { _ in backoff.pause() })
    #expect(pauses.count > 10)
  }

  @Test func anotherClusterIsRefused() throws {
    var identity = ClusterIdentity(nil)
    try identity.take(header(cluster: 1, revision: 10), notBefore: nil)
    #expect(throws: ClusterError.self) { try identity.take(header(cluster: 2, revision: 11), notBefore: nil) }
    #expect(identity.mark == ClusterMark(cluster: 1, revision: 10))
    var remembered = ClusterIdentity(ClusterMark(cluster: 3, revision: 1))
    #expect(throws: ClusterError.self) {
      try remembered.take(header(cluster: 1, revision: 10), notBefore: nil)
    }
  }

  @Test func majorityIsNeverBehindWhatWasSeen() throws {
    let seen = ClusterMark(cluster: 1, revision: 10)
    var identity = ClusterIdentity(seen)
    // One server may lag.
    try identity.take(header(cluster: 1, revision: 9), notBefore: nil)
    #expect(identity.mark == seen)
    #expect(throws: ClusterError.self) { try identity.take(header(cluster: 1, revision: 9), notBefore: seen) }
    try identity.take(header(cluster: 1, revision: 10), notBefore: seen)
  }

  private func header(cluster: UInt64, revision: Int64) -> ClusterHeader {
    ClusterHeader(cluster: cluster, member: 1, revision: revision, term: 1)
  }
}
