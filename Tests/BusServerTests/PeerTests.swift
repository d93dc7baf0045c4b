import BusServer
import Glibc
import KeyringHarness
import Testing

/// Clients that are gone, slow or greedy, and a bus that ends.
@Suite(.timeLimit(.minutes(1))) struct PeerTests {
  let bus: PrivateBus
  let server: TestServer
  let client: RawClient

  init() async throws {
    bus = try PrivateBus(replies: 50_000)
    server = try TestServer()
    try await server.connect(bus.address)
    client = try RawClient(bus.address)
  }

  private func message(_ member: String, _ signature: String = "", _ body: [UInt8] = []) -> RawMessage {
    RawMessage(
      path: "/test", interface: TestServer.name, member: member, destination: TestServer.name,
      signature: signature, body: body)
  }

  /// The bus drops the reply; nothing else happens.
  @Test func replyToAPeerThatIsGoneDisturbsNone() async throws {
    for _ in 0..<20 {
      let fleeting = try RawClient(bus.address)
      try fleeting.send(message("Hold"))
      // Behind it, so that the service has it.
      _ = try fleeting.call("Echo")
      fleeting.close()
    }
    #expect(try client.call("Release").body == [20, 0, 0, 0])
    #expect(try client.call("Echo").kind == .reply)
  }

  @Test func droppedCallIsNotAnswered() async throws {
    let held = try client.send(message("Hold"))
    _ = try client.call("Echo")
    await server.dropHeld()
    // The replies to what was dropped are none.
    let release = try client.send(message("Release"))
    #expect(try client.receive().replySerial == release)
    #expect(held < release)
  }

  @Test(arguments: [1 << 16, 1 << 20, 3 << 20]) func bigMessagesComeBackWhole(count: Int) throws {
    let body = RawBody.of { $0.put((0..<count).map { UInt8(truncatingIfNeeded: $0) }) }
    let reply = try client.call("Echo", "ay", body)
    #expect(reply.kind == .reply && reply.body == body)
  }

  @Test func messagesOfManyValuesComeBackWhole() throws {
    let body = RawBody.of { body in
      body.array(8) { array in
        for number in 0..<20_000 {
          array.align(8)
          array.put("name \(number)")
          array.put("value \(number)")
        }
      }
    }
    let reply = try client.call("Echo", "a{ss}", body)
    #expect(reply.kind == .reply && reply.body == body)
  }

  /// 25 MiB of replies wait in the bus, and another client gets its own at once.
  @Test func peerThatStopsReadingDelaysNone() throws {
    let lazy = try RawClient(bus.address)
    var serials: [UInt32] = []
    let count = RawBody.of { $0.put(UInt32(1 << 18)) }
    for _ in 0..<100 { serials.append(try lazy.send(message("Bytes", "u", count))) }
    for _ in 0..<20 { #expect(try client.call("Echo").kind == .reply) }
    for serial in serials { #expect(try lazy.reply(to: serial).body.count == 1 << 18 + 4) }
  }

  /// Messages for a bus that reads nothing wait in this process, whose thread goes on; they are sent when the bus reads again.
  @Test func busThatStopsReadingHoldsNothingUp() async throws {
    let rule = "type='signal',interface='\(TestServer.name)'"
    _ = try client.call(
      "AddMatch", "s", RawBody.of { $0.put(rule) }, destination: "org.freedesktop.DBus",
      path: "/org/freedesktop/DBus", interface: "org.freedesktop.DBus")
    bus.signalBus(SIGSTOP)
    defer { bus.signalBus(SIGCONT) }
    try await server.emit(100, bytes: 1 << 16)
    // Another job of the same thread.
    #expect(await server.calls.isEmpty)
    bus.signalBus(SIGCONT)
    for _ in 0..<100 {
      let signal = try client.receive()
      #expect(signal.kind == .signal && signal.member == "Signal" && signal.body.count == 1 << 16 + 4)
    }
  }

  @Test func callOfTheBusIsAnsweredOrFails() async throws {
    guard case .success(let values) = await server.callBus("NameHasOwner", [.string(TestServer.name)]),
      case .bool(true)? = values.first
    else {
      Issue.record("the name has no owner")
      return
    }
    guard case .failure(let error) = await server.callBus("NoSuchMethod", []) else {
      Issue.record("it was answered")
      return
    }
    #expect(error.name == "org.freedesktop.DBus.Error.UnknownMethod")
  }

  /// The end of the bus is reported once; nothing can be sent then, and another connection of the same thread serves on the next one.
  @Test func busEndsAndComesBack() async throws {
    try client.send(message("Hold"))
    _ = try client.call("Echo")
    bus.stopBus()
    await server.waitForLoss()
    try await server.emit(1, bytes: 1)
    guard case .failure(let error) = await server.callBus("ListNames", []) else {
      Issue.record("a bus that is gone answered")
      return
    }
    #expect(error.name == "org.freedesktop.DBus.Error.Disconnected")
    try bus.startBus()
    try await server.connect(bus.address)
    let next = try RawClient(bus.address)
    #expect(try next.call("Release").body == [0, 0, 0, 0])
    #expect(try next.call("Echo").kind == .reply)
  }

  @Test func closedConnectionHasNoName() async throws {
    await server.close()
    // NoReply: the bus has taken the call before it saw the end of the connection.
    let reply = try client.call("Echo")
    let errors = ["ServiceUnknown", "NoReply"].map { "org.freedesktop.DBus.Error." + $0 }
    #expect(errors.contains(reply.error))
    guard case .failure = await server.callBus("ListNames", []) else {
      Issue.record("a closed connection was answered")
      return
    }
  }

  @Test(arguments: ["", "unix:path=/nonexistent/bus", "nonsense", "tcp:host=localhost,port=1"])
  func otherAddressesAreRefused(_ address: String) async throws {
    let server = try TestServer()
    await #expect(throws: BusFailure.self) { try await server.connect(address) }
    #expect(throws: BusFailure.self) { try BusConnection.callOnce("ReloadConfig", at: address) }
  }

  @Test func busItselfIsCalledOnce() throws {
    try BusConnection.callOnce("ReloadConfig", at: bus.address)
    #expect(throws: BusFailure.self) { try BusConnection.callOnce("NoSuchMethod", at: bus.address) }
  }
}
