import BusServer
import SecretServiceProtocol

// The order of changes.

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
    dispatchWaiting(call.sender)
  }

  /// Dispatches the calls that waited, up to the next change.
  func dispatchWaiting(_ name: String) {
    while let client = clients[name], client.changes.isEmpty, !client.waiting.isEmpty {
      guard let next = clients[name]?.waiting.removeFirst() else { return }
      dispatch(next)
    }
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
