import Platform

/// A connection to the system bus, as far as calls with texts and listening to signals take it: the D-Bus protocol
/// without a library, which would bring threads of its own into a process that holds keys.
final class SystemBus {
  /// A failure, with its description for a person.
  struct Failure: Error {
    let reason: String
  }

  fileprivate static let standardPath = "/run/dbus/system_bus_socket"
  /// For the beginning, and for what is sent.
  private static let patience = 5
  /// Nothing that is listened to is longer.
  private static let longestMessage = 1 << 20

  let socket: StreamSocket
  /// How long the next bytes may take to come; nil: there is no limit.
  var patience: Duration?
  private var received: [UInt8] = []
  /// Those that came and belong to messages that are not read yet, the oldest first.
  private var descriptors: [PassedDescriptor] = []
  private var lastSerial: UInt32 = 0

  /// Which bus is meant.
  enum Address {
    /// The one that DBUS_SYSTEM_BUS_ADDRESS names, else the system's.
    case named
    /// The system's, whatever the environment says: where a program that lies would gain something.
    case fixed

    fileprivate var path: String {
      #if DEBUG
        // Tests have a bus of their own; a release has no such switch.
        SystemBus.path()
      #else
        self == .named ? SystemBus.path() : SystemBus.standardPath
      #endif
    }
  }

  init(_ address: Address = .named) throws(Failure) {
    socket = try Self.connect(to: address.path)
    try authenticate()
    try call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello")
  }

  /// The descriptor that came with a message; nil: none did.
  func takeDescriptor(of message: BusMessage) -> PassedDescriptor? {
    message.hasDescriptor && !descriptors.isEmpty ? descriptors.removeFirst() : nil
  }

  /// Calls a method, and returns the number that its answer will have.
  @discardableResult
  func call(
    _ name: String, _ path: String, _ interface: String, _ method: String, _ arguments: [String] = []
  ) throws(Failure) -> UInt32 {
    lastSerial += 1
    try send(
      BusMessage.call(
        serial: lastSerial, to: name, path: path, interface: interface, method: method, arguments: arguments))
    return lastSerial
  }

  /// The messages that have come; waits for some if there are none. Empty: the bus is gone.
  func receive() -> [BusMessage] {
    // A message may come in as many pieces as it has bytes.
    while true {
      let bytes = readSome(16 * 1024)
      guard !bytes.isEmpty else { return [] }
      received += bytes
      guard let messages = takeMessages() else { return [] }
      if !messages.isEmpty { return messages }
    }
  }

  /// The complete messages that have been received; nil: one message is too long.
  private func takeMessages() -> [BusMessage]? {
    var messages: [BusMessage] = []
    while let length = BusMessage.length(of: received) {
      guard length <= Self.longestMessage else { return nil }
      guard length <= received.count else { break }
      messages.append(BusMessage(Array(received[..<length])))
      received.removeFirst(length)
    }
    return messages
  }
}

extension SystemBus {
  fileprivate static func path() -> String {
    let address = Environment.value("DBUS_SYSTEM_BUS_ADDRESS") ?? ""
    let fields = address.split(separator: ";").first?.split(separator: ",") ?? []
    let path = fields.compactMap { field in
      field.hasPrefix("unix:path=") ? String(field.dropFirst(10)) : nil
    }.first
    return path ?? standardPath
  }

  private static func connect(to path: String) throws(Failure) -> StreamSocket {
    do throws(Errno) {
      return try StreamSocket(connectingTo: path, within: patience)
    } catch {
      throw Failure(
        reason: error == .ENAMETOOLONG ? "the system bus has too long a path" : "there is no system bus")
    }
  }

  /// SASL's mechanism EXTERNAL: the socket itself says whose it is.
  private func authenticate() throws(Failure) {
    patience = .seconds(Self.patience)
    let user = "\(User.real)".utf8.map { String($0, radix: 16) }.joined()
    try send(Array("\0AUTH EXTERNAL \(user)\r\n".utf8))
    guard try readLine().starts(with: "OK ".utf8) else {
      throw Failure(reason: "the system bus refuses this user")
    }
    // Its reply does not matter: without descriptors there are still signals.
    try send(Array("NEGOTIATE_UNIX_FD\r\n".utf8))
    _ = try readLine()
    try send(Array("BEGIN\r\n".utf8))
    patience = nil
  }

  private func readLine() throws(Failure) -> [UInt8] {
    var answer: [UInt8] = []
    while !answer.contains(0x0A), answer.count < 1024 {
      let bytes = readSome(256)
      guard !bytes.isEmpty else { throw Failure(reason: "the system bus does not answer") }
      answer += bytes
    }
    return answer
  }

  private func send(_ bytes: [UInt8]) throws(Failure) {
    do throws(Errno) {
      try socket.send(bytes.span, until: .now + .seconds(Self.patience))
    } catch {
      throw Failure(reason: "the system bus is gone")
    }
  }

  /// The next bytes, no more than `limit`, and the descriptor that comes with them; empty: none come in time, or the
  /// bus is gone.
  private func readSome(_ limit: Int) -> [UInt8] {
    let deadline = patience.map { ContinuousClock.now + $0 }
    while (try? socket.wait(until: deadline)) == true {
      var bytes = [UInt8](repeating: 0, count: limit)
      var span = bytes.mutableSpan
      let result = Result { () throws(Errno) in try socket.receiveWithDescriptor(into: &span) }
      guard case .success(let received) = result else { return [] }
      // Another look: what was there is gone.
      guard let received else { continue }
      if let descriptor = received.descriptor { descriptors.append(descriptor) }
      return Array(bytes[..<received.count])
    }
    return []
  }
}
