import Glibc

/// A connection to a bus that sends any bytes, and reads only what a test asks for.
final class RawClient {
  struct Failure: Error {
    let reason: String
  }

  private var socket: Int32
  private var serial: UInt32 = 0
  /// How long one read may take, in seconds.
  private static let patience = 30

  /// Connects to `unix:path=PATH`, and gets a name.
  init(_ address: String) throws {
    socket = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var time = timeval(tv_sec: Self.patience, tv_usec: 0)
    unsafe setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    var name = sockaddr_un()
    name.sun_family = sa_family_t(AF_UNIX)
    let path = address.dropFirst("unix:path=".count)
    unsafe withUnsafeMutableBytes(of: &name.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
    let result = unsafe withUnsafePointer(to: &name) { name in
      unsafe name.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe connect(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard result == 0 else { throw Failure(reason: "connect: \(errno)") }
    let user = "\(getuid())".utf8.map { String($0, radix: 16) }.joined()
    try write([0] + Array("AUTH EXTERNAL \(user)\r\n".utf8))
    var line: [UInt8] = []
    while line.last != UInt8(ascii: "\n") { line += try read(1) }
    guard line.starts(with: Array("OK".utf8)) else { throw Failure(reason: "the bus does not let it in") }
    try write(Array("BEGIN\r\n".utf8))
    let bus = "org.freedesktop.DBus"
    _ = try call("Hello", destination: bus, path: "/org/freedesktop/DBus", interface: bus)
  }

  deinit { close() }

  func close() {
    guard socket >= 0 else { return }
    Glibc.close(socket)
    socket = -1
  }

  func write(_ bytes: [UInt8]) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes {
        unsafe Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw Failure(reason: "send: \(errno)") }
      rest = rest.dropFirst(count)
    }
  }

  private func read(_ count: Int) throws -> [UInt8] {
    var bytes: [UInt8] = []
    while bytes.count < count {
      var part = [UInt8](repeating: 0, count: min(count - bytes.count, 1 << 20))
      let got = unsafe part.withUnsafeMutableBytes { unsafe recv(socket, $0.baseAddress, $0.count, 0) }
      guard got > 0 else { throw Failure(reason: got == 0 ? "the bus has closed it" : "recv: \(errno)") }
      bytes += part.prefix(got)
    }
    return bytes
  }

  /// The next message of any kind.
  func receive() throws -> RawMessage {
    let start = try read(16)
    return RawMessage(start + (try read(RawMessage.length(start) - 16)))
  }

  /// Sends a message, and returns its serial.
  @discardableResult
  func send(_ message: RawMessage) throws -> UInt32 {
    var message = message
    serial += 1
    message.serial = serial
    try write(message.bytes)
    return serial
  }

  /// The reply to a call, or its error; other messages are passed over.
  func reply(to serial: UInt32) throws -> RawMessage {
    while true {
      let message = try receive()
      if message.replySerial == serial { return message }
    }
  }

  func call(
    _ member: String, _ signature: String = "", _ body: [UInt8] = [], destination: String = TestServer.name,
    path: String = "/test", interface: String = "org.keyhole.Test"
  ) throws -> RawMessage {
    try reply(
      to: send(
        RawMessage(
          path: path, interface: interface, member: member, destination: destination, signature: signature,
          body: body)))
  }
}
