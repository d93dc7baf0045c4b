import BusServer
import SecretMemory
import Testing

/// A service that gives back what it gets, on the thread of its bus.
actor TestServer {
  static let name = "org.keyhole.Test"

  nonisolated let loop: BusLoop
  private var connection: BusConnection?
  /// Calls that were not answered.
  private var held: [BusMessage] = []
  private(set) var calls: [BusMessage] = []
  private var losses = AsyncStream<Void>.makeStream()

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  init() throws {
    loop = try BusLoop()
    #expect(loop.start())
  }

  deinit { loop.stop() }

  /// Connects, also again, and takes the name.
  func connect(_ address: String) async throws {
    let losses = losses.continuation
    let connection = try BusConnection(to: address, on: loop) { [weak self] message in
      self?.assumeIsolated { $0.take(message) }
    } lost: {
      losses.yield()
    }
    (self.connection, held) = (connection, [])
    let result = await callBus("RequestName", [.string(Self.name), .uint32(4)])
    guard case .success(let values) = result, case .uint32(1)? = values.first else {
      throw BusFailure(reason: "it does not get its name")
    }
  }

  /// Returns when the bus is gone.
  func waitForLoss() async {
    for await _ in losses.stream { return }
  }

  func callBus(_ method: String, _ values: [BusValue]) async -> Result<[BusValue], BusError> {
    await withCheckedContinuation { continuation in
      guard let connection else { return continuation.resume(returning: .success([])) }
      connection.callBus(method, values) { continuation.resume(returning: $0) }
    }
  }

  func emit(_ count: Int, bytes: Int) throws {
    for _ in 0..<count {
      connection?.emit("/test", Self.name, "Signal", [.bytes(BusBytes(try SecretBytes(count: bytes)))])
    }
  }

  func close() { connection?.close() }

  /// Forgets the calls that were not answered.
  func dropHeld() {
    for call in held { connection?.drop(call) }
  }

  private func take(_ message: BusMessage) {
    guard message.kind == .call else { return }
    calls.append(message)
    switch message.member {
    case "Hold": held.append(message)
    case "Release":
      for call in held { connection?.reply(to: call, .success([])) }
      connection?.reply(to: message, .success([.uint32(UInt32(held.count))]))
      held = []
    case "Twice":
      for number in 1...2 { connection?.reply(to: message, .success([.uint32(UInt32(number))])) }
    case "Refuse": connection?.reply(to: message, .failure(BusError("org.keyhole.Error.No", "no")))
    case "Nothing": connection?.reply(to: message, .success([.string("a\0b")]))
    case "Bytes":
      guard case .uint32(let count)? = message.arguments.first,
        let bytes = try? SecretBytes(count: Int(count))
      else { return }
      connection?.reply(to: message, .success([.bytes(BusBytes(bytes))]))
    default: connection?.reply(to: message, .success(message.arguments))
    }
  }
}
