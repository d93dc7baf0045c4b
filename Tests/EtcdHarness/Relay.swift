import Glibc
import Platform
import Synchronization

/// Passes connections on to a server, until it is to do something else with them.
public final class Relay: Sendable {
  public enum Mode: Sendable {
    /// All bytes are passed on.
    case open
    /// Connections are taken, and nothing is passed on to the server or from it.
    case silent
    /// The bytes of clients are passed on; a connection ends when the server sends the next bytes, which are lost.
    case cutAtReply
    /// Connections end as soon as they are made.
    case closed
  }

  private struct State {
    var mode = Mode.open
    var target: UInt16 = 0
    var connections: [Int32] = []
    var isEnded = false
    /// Connections that ended with lost bytes.
    var cuts = 0
    /// The connection over which it is asked for gets no reply any more.
    var lost: LostReply?
  }

  public let port: UInt16
  private let listener: Int32
  private let address: String
  private let network: TestNetwork?
  private let state = Mutex(State())

  /// `network`: where the server is; clients are in this process's.
  public init(to target: UInt16, at address: String = "127.0.0.1", through network: TestNetwork? = nil) throws
  {
    (self.address, self.network) = (address, network)
    state.withLock { $0.target = target }
    let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = FreePorts.loopback(0)
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isBound = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        unsafe bind(number, address, size) == 0 && listen(number, 64) == 0
          && getsockname(number, address, &size) == 0
      }
    }
    guard isBound else { throw EtcdNodes.Failure(description: "no port for a relay") }
    listener = number
    port = UInt16(bigEndian: address.sin_port)
    Self.thread { [self] in
      // The connections that this thread makes are there; the socket that it listens on stays where it was made.
      try? network?.enter()
      accept()
    }
  }

  /// Ends all connections, and takes no more. The threads end by that.
  public func stop() {
    state.withLock { state in
      state.isEnded = true
      for connection in state.connections { shutdown(connection, Int32(SHUT_RDWR)) }
    }
    shutdown(listener, Int32(SHUT_RDWR))
  }

  public var endpoint: String { "127.0.0.1:\(port)" }

  public var cuts: Int { state.withLock { $0.cuts } }

  /// For present connections too, but for those that ended.
  public func set(_ mode: Mode) {
    state.withLock { state in
      state.mode = mode
      if case .closed = mode {
        for connection in state.connections { shutdown(connection, Int32(SHUT_RDWR)) }
      }
    }
  }

  /// From now on the server's reply to a request is lost, and all that follows over that connection, which stays open; nil: none any more.
  public func lose(_ reply: LostReply?) {
    state.withLock { $0.lost = reply }
  }

  /// Connections that are made from now on go to another server.
  public func redirect(to target: UInt16) {
    state.withLock { $0.target = target }
  }

  private var mode: Mode { state.withLock { $0.mode } }

  private func accept() {
    while true {
      let client = Glibc.accept(listener, nil, nil)
      if state.withLock({ $0.isEnded }) || client < 0 && errno != EINTR && errno != ECONNABORTED {
        close(client)
        close(listener)
        return
      }
      guard client >= 0 else { continue }
      _ = fcntl(client, F_SETFD, FD_CLOEXEC)
      serve(client)
    }
  }

  private func serve(_ client: Int32) {
    if case .closed = mode {
      close(client)
      return
    }
    let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = FreePorts.place(state.withLock { $0.target }, at: address)
    let isConnected = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        unsafe connect(server, address, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    guard isConnected else {
      for end in [client, server] { close(end) }
      return
    }
    var on: Int32 = 1
    for end in [client, server] {
      unsafe setsockopt(end, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    }
    state.withLock { $0.connections += [client, server] }
    let pair = Pair(client: client, server: server)
    Self.thread { [self] in copy(pair, fromServer: false) }
    Self.thread { [self] in copy(pair, fromServer: true) }
  }

  /// Both directions of a connection; the last one closes it.
  private final class Pair: Sendable {
    let client: Int32
    let server: Int32
    let directions = Atomic<Int>(2)
    let isMuted = Atomic(false)

    init(client: Int32, server: Int32) { (self.client, self.server) = (client, server) }
  }

  private func copy(_ pair: Pair, fromServer: Bool) {
    let (source, sink) = fromServer ? (pair.server, pair.client) : (pair.client, pair.server)
    var bytes = [UInt8](repeating: 0, count: 64 * 1024)
    while true {
      let count = unsafe bytes.withUnsafeMutableBytes { unsafe recv(source, $0.baseAddress, $0.count, 0) }
      guard count > 0 else { break }
      let mode = mode
      if case .silent = mode { continue }
      if fromServer {
        if pair.isMuted.load(ordering: .acquiring) { continue }
      } else if state.withLock({ $0.lost })?.isOf(bytes[..<count]) == true {
        pair.isMuted.store(true, ordering: .releasing)
      }
      if case .cutAtReply = mode, fromServer {
        state.withLock { $0.cuts += 1 }
        break
      }
      guard send(bytes[..<count], to: sink) else { break }
    }
    for end in [source, sink] { shutdown(end, Int32(SHUT_RDWR)) }
    guard pair.directions.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 else { return }
    state.withLock { state in
      state.connections.removeAll { $0 == pair.client || $0 == pair.server }
      for end in [pair.client, pair.server] { close(end) }
    }
  }

  private func send(_ bytes: ArraySlice<UInt8>, to sink: Int32) -> Bool {
    var rest = bytes
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes {
        unsafe Glibc.send(sink, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }

  private static func thread(_ body: @escaping @Sendable () -> Void) {
    ThreadID.start(body)
  }
}

extension [Relay] {
  public func set(_ mode: Relay.Mode) { for relay in self { relay.set(mode) } }

  public func stop() { for relay in self { relay.stop() } }
}

/// The reply to the first request that has some bytes, over any of several relays.
public final class LostReply: Sendable {
  private let text: [UInt8]
  private let isTaken = Atomic(false)

  public init(toRequestWith text: String) { self.text = Array(text.utf8) }

  /// Whether there was such a request.
  public var isLost: Bool { isTaken.load(ordering: .acquiring) }

  fileprivate func isOf(_ request: ArraySlice<UInt8>) -> Bool {
    request.contains(text) && !isTaken.exchange(true, ordering: .acquiringAndReleasing)
  }
}
