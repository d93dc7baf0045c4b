import Platform

/// The lines that come through a socket.
struct LineReader {
  private let socket: StreamSocket
  private var bytes: [UInt8] = []

  init(_ socket: StreamSocket) {
    self.socket = socket
  }

  /// Waits for the next line. nil: the other side is gone.
  mutating func next() -> String? {
    while true {
      if let end = bytes.firstIndex(of: UInt8(ascii: "\n")) {
        defer { bytes.removeSubrange(...end) }
        return String(decoding: bytes[..<end], as: UTF8.self)
      }
      guard receiveMore() else { return nil }
    }
  }

  private mutating func receiveMore() -> Bool {
    var chunk = [UInt8](repeating: 0, count: 4096)
    while (try? socket.wait(until: nil)) == true {
      var span = chunk.mutableSpan
      let result = Result { () throws(Errno) in try socket.receive(into: &span)?.count }
      guard case .success(let count) = result, count != 0 else { return false }
      guard let count else { continue }
      bytes += chunk[..<count]
      return true
    }
    return false
  }
}
