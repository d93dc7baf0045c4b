import BusServer
import KeyringHarness
import Testing

/// Messages of every shape, also of those that no client of the API sends.
@Suite(.timeLimit(.minutes(1))) struct MessageTests {
  let bus: PrivateBus
  let server: TestServer
  let client: RawClient

  init() async throws {
    bus = try PrivateBus()
    server = try TestServer()
    try await server.connect(bus.address)
    client = try RawClient(bus.address)
  }

  /// A value with its signature.
  struct Example: CustomTestStringConvertible {
    let signature: String
    let body: [UInt8]

    init(_ signature: String, _ body: (inout RawBody) -> Void) {
      (self.signature, self.body) = (signature, RawBody.of(body))
    }

    var testDescription: String { signature }
  }

  static let kept = [
    Example("") { _ in }, Example("b") { $0.put(UInt32(1)) }, Example("y") { $0.put(UInt8(200)) },
    Example("i") { $0.put(Int32(-7)) }, Example("u") { $0.put(UInt32.max) },
    Example("t") { $0.put(UInt64.max) }, Example("s") { $0.put("é") }, Example("s") { $0.put("") },
    Example("o") { $0.put("/a/b") }, Example("ay") { $0.put([0, 1, 255]) }, Example("ay") { $0.put([]) },
    Example("as") {
      $0.array(4) { array in
        array.put("x")
        array.put("yy")
      }
    },
    Example("ao") { $0.array(4) { _ in } },
    Example("a{ss}") {
      $0.array(8) { array in
        array.put("key")
        array.put("value")
      }
    },
    Example("(oayays)") { body in
      body.put("/s")
      body.put([1])
      body.put([2, 3])
      body.put("text/plain")
    },
    Example("v") { body in
      body.put(signature: "s")
      body.put("inside")
    },
    Example("ssu") { body in
      body.put("a")
      body.put("b")
      body.put(UInt32(3))
    },
  ]

  @Test(arguments: kept) func valuesComeBack(_ example: Example) throws {
    let reply = try client.call("Echo", example.signature, example.body)
    #expect(reply.kind == .reply && reply.signature == example.signature)
    #expect(reply.body == example.body)
  }

  /// Types that no method of the API has: they are read, and have no value.
  static let others = [
    Example("n") { $0.put(Int16(-1)) }, Example("q") { $0.put(UInt16(1)) },
    Example("x") { $0.put(Int64(-1)) },
    Example("d") { $0.put((1.5 as Double).bitPattern) }, Example("g") { $0.put(signature: "a{sv}") },
    Example("ad") { $0.array(8) { array in array.put((1.5 as Double).bitPattern) } },
    Example("(xs)") { body in
      body.put(Int64(1))
      body.put("s")
    },
  ]

  @Test(arguments: others) func valuesOfOtherTypesAreAnError(_ example: Example) throws {
    let reply = try client.call("Echo", example.signature, example.body)
    #expect(reply.kind == .error && reply.error == "org.freedesktop.DBus.Error.Failed")
    #expect(try client.call("Echo").kind == .reply)
  }

  /// As deep as D-Bus allows: a variant in a variant.
  @Test func deepValuesComeBack() throws {
    let body = RawBody.of { body in
      for _ in 0..<60 { body.put(signature: "v") }
      body.put(signature: "u")
      body.put(UInt32(7))
    }
    let reply = try client.call("Echo", "v", body)
    #expect(reply.kind == .reply && reply.body == body)
  }

  /// The bus closes the connection of a client that sends what is no message; the others go on.
  @Test(arguments: [0, 1, 3, 4, 12]) func wrongBytesEndTheirClientOnly(place: Int) throws {
    let hostile = try RawClient(bus.address)
    var bytes = RawMessage(
      serial: 9, path: "/test", interface: TestServer.name, member: "Echo", destination: TestServer.name
    ).bytes
    bytes[place] = 0xFF
    try hostile.write(bytes + [UInt8](repeating: 0xFF, count: 4096))
    #expect(throws: RawClient.Failure.self) { while true { _ = try hostile.receive() } }
    #expect(try client.call("Echo").kind == .reply)
  }

  @Test func callSaysWhatWasCalled() async throws {
    let serial = try client.send(
      RawMessage(
        path: "/x/y", member: "Echo", destination: TestServer.name, signature: "s",
        body: RawBody.of { $0.put("z") }))
    _ = try client.reply(to: serial)
    let call = try #require(await server.calls.last)
    #expect(call.path == "/x/y" && call.interface.isEmpty && call.member == "Echo" && call.signature == "s")
    #expect(call.sender.hasPrefix(":") && call.arguments.first?.text == "z")
  }

  @Test func errorsHaveTheirNames() throws {
    #expect(try client.call("Refuse").error == "org.keyhole.Error.No")
    // A text with NUL can't be sent.
    #expect(try client.call("Nothing").error == "org.freedesktop.DBus.Error.Failed")
  }

  /// `Ping` is answered by the library: no program sees it.
  @Test func peerIsAnsweredByTheLibrary() async throws {
    #expect(try client.call("Ping", interface: "org.freedesktop.DBus.Peer").kind == .reply)
    #expect(await server.calls.isEmpty)
  }

  @Test func callIsAnsweredOnce() throws {
    let first = try client.send(
      RawMessage(path: "/test", interface: TestServer.name, member: "Twice", destination: TestServer.name))
    let second = try client.send(
      RawMessage(path: "/test", interface: TestServer.name, member: "Echo", destination: TestServer.name))
    #expect(try client.reply(to: first).body == [1, 0, 0, 0])
    #expect(try client.receive().replySerial == second)
  }

  @Test func callThatWantsNoReplyGetsNone() async throws {
    let silent = try client.send(
      RawMessage(
        flags: 1, path: "/test", interface: TestServer.name, member: "Echo", destination: TestServer.name))
    let next = try client.send(
      RawMessage(path: "/test", interface: TestServer.name, member: "Echo", destination: TestServer.name))
    var message = try client.receive()
    while message.replySerial != next {
      #expect(message.replySerial != silent)
      message = try client.receive()
    }
    #expect(await server.calls.count == 2)
  }
}
