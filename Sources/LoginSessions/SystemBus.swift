import CSystem
import Glibc

/// A connection to the system bus, as far as calls with texts and listening to signals take it: the D-Bus protocol
/// without a library, which would bring threads of its own into a process that holds keys.
final class SystemBus {
  /// A failure, with its description for a person.
  struct Failure: Error {
    let reason: String
  }

  fileprivate static let standardPath = "/run/dbus/system_bus_socket"
  /// In seconds; for the beginning only.
  private static let patience = 5
  /// Nothing that is listened to is longer.
  private static let longestMessage = 1 << 20

  let descriptor: Int32
  private var received: [UInt8] = []
  /// Those that came and belong to messages that are not read yet, the oldest first.
  private var descriptors: [Int32] = []
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
    let descriptor = try Self.connect(to: address.path)
    self.descriptor = descriptor
    try authenticate()
    try call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello")
  }

  deinit {
    for descriptor in descriptors { close(descriptor) }
    close(descriptor)
  }

  /// The descriptor that came with a message, which the caller closes; nil: none did.
  func takeDescriptor(of message: BusMessage) -> Int32? {
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
    var chunk = [UInt8](repeating: 0, count: 16 * 1024)
    // A message may come in as many pieces as it has bytes.
    while true {
      let count = readSome(&chunk)
      guard count > 0 else { return [] }
      received += chunk[..<count]
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
    let address = unsafe getenv("DBUS_SYSTEM_BUS_ADDRESS").map { unsafe String(cString: $0) } ?? ""
    let fields = address.split(separator: ";").first?.split(separator: ",") ?? []
    let path = fields.compactMap { field in
      field.hasPrefix("unix:path=") ? String(field.dropFirst(10)) : nil
    }.first
    return path ?? standardPath
  }

  private static func connect(to path: String) throws(Failure) -> Int32 {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let isShort = unsafe withUnsafeMutableBytes(of: &address.sun_path) { bytes in
      guard path.utf8.count < bytes.count else { return false }
      unsafe bytes.copyBytes(from: path.utf8)
      return true
    }
    guard isShort else { throw Failure(reason: "the system bus has too long a path") }
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    let result = unsafe withUnsafePointer(to: &address) { pointer in
      // SAFETY: a sockaddr_un is a sockaddr of that length.
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard result == 0 else {
      close(descriptor)
      throw Failure(reason: "there is no system bus")
    }
    return descriptor
  }

  /// SASL's mechanism EXTERNAL: the socket itself says whose it is.
  private func authenticate() throws(Failure) {
    setPatience(Self.patience)
    let user = "\(getuid())".utf8.map { String($0, radix: 16) }.joined()
    try send(Array("\0AUTH EXTERNAL \(user)\r\n".utf8))
    guard try readLine().starts(with: "OK ".utf8) else {
      throw Failure(reason: "the system bus refuses this user")
    }
    // Its reply does not matter: without descriptors there are still signals.
    try send(Array("NEGOTIATE_UNIX_FD\r\n".utf8))
    _ = try readLine()
    try send(Array("BEGIN\r\n".utf8))
    setPatience(0)
  }

  private func readLine() throws(Failure) -> [UInt8] {
    var answer: [UInt8] = []
    while !answer.contains(0x0A), answer.count < 1024 {
      var chunk = [UInt8](repeating: 0, count: 256)
      let count = readSome(&chunk)
      guard count > 0 else { throw Failure(reason: "the system bus does not answer") }
      answer += chunk[..<count]
    }
    return answer
  }

  func setPatience(_ seconds: Int) {
    var time = timeval(tv_sec: seconds, tv_usec: 0)
    unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
  }

  private func send(_ bytes: [UInt8]) throws(Failure) {
    // SAFETY: the buffer says how long it is. It is short: a socket takes it at once.
    let count = unsafe bytes.withUnsafeBytes {
      unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
    }
    guard count == bytes.count else { throw Failure(reason: "the system bus is gone") }
  }

  private func readSome(_ chunk: inout [UInt8]) -> Int {
    var other: Int32 = -1
    while true {
      // SAFETY: the buffer says how long it is.
      let count = unsafe chunk.withUnsafeMutableBytes {
        unsafe linux_receive(descriptor, $0.baseAddress, $0.count, &other)
      }
      if other >= 0 { descriptors.append(other) }
      guard count < 0, errno == EINTR else { return count }
    }
  }
}
