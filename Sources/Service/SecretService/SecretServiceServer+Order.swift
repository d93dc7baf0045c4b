import BusServer
import SecretServiceProtocol

// The order of calls, and of changes.

/// The calls of one client, the oldest first.
struct CallQueue {
  private var calls: [BusMessage?] = []
  private var first = 0

  init() {}

  init(_ call: BusMessage) { calls = [call] }

  var count: Int { calls.count - first }
  var isEmpty: Bool { count == 0 }
  var all: [BusMessage] { calls[first...].compactMap { $0 } }

  mutating func append(_ call: BusMessage) { calls.append(call) }

  mutating func takeFirst() -> BusMessage? {
    guard first < calls.count else { return nil }
    let call = calls[first].take()
    first += 1
    // The memory of calls that were taken is freed in large parts.
    if first == calls.count || first >= 512 {
      calls.removeFirst(first)
      first = 0
    }
    return call
  }
}

extension SecretServiceServer {
  /// The client's next call has its turn when each other client's has had one, unless it has to wait for an earlier change, or for
  /// the bus to tell who the client is.
  func offerTurn(to name: String) {
    guard let client = clients[name], !client.isReady, client.isIdentified, client.changes.isEmpty,
      !client.waiting.isEmpty
    else { return }
    clients[name]?.isReady = true
    ready.append(name)
  }

  /// Answers one call, of the client whose turn it is. False: none waits.
  func answerNext() -> Bool {
    while !ready.isEmpty {
      let name = ready.remove(at: 0)
      clients[name]?.isReady = false
      guard let client = clients[name], client.changes.isEmpty,
        let call = clients[name]?.waiting.takeFirst()
      else { continue }
      dispatch(call)
      offerTurn(to: name)
      return true
    }
    return false
  }
}

/// Changes that are made one after the other.
struct ChangeTurns {
  fileprivate var isTaken = false
  /// The next one first.
  fileprivate var waiting: [CheckedContinuation<Void, Never>] = []
}

extension SecretServiceServer {
  /// Makes a change and replies when it is done. Later calls of the same client wait for it, so that they find its effect.
  func replyAfterChange(to call: BusMessage, _ body: @escaping Later) {
    clients[call.sender]?.changes.insert(call.number)
    replyLater(to: call) { (server) async throws(ProtocolError) in
      defer { server.endChange(call) }
      return try await body(server)
    }
  }

  /// The client's later calls go on: the change is done, or waits for a person.
  func endChange(_ call: BusMessage) {
    guard clients[call.sender]?.changes.remove(call.number) != nil else { return }
    offerTurn(to: call.sender)
  }

  /// Runs `body` while no other change of the keychain runs: what it finds is still so when it changes it.
  func exclusively<Value: Sendable>(
    _ body: (isolated SecretServiceServer) async throws(ProtocolError) -> Value
  ) async throws(ProtocolError) -> Value {
    await takeTurn()
    defer { giveTurn() }
    return try await body(self)
  }

  private func takeTurn() async {
    guard turns.isTaken else {
      turns.isTaken = true
      return
    }
    await withCheckedContinuation { turns.waiting.append($0) }
  }

  private func giveTurn() {
    guard !turns.waiting.isEmpty else {
      turns.isTaken = false
      return
    }
    turns.waiting.removeFirst().resume()
  }
}
