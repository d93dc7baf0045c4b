/// Messages as gRPC frames them in a stream: a byte that is 0, since nothing is compressed, the length in four bytes with the
/// highest one first, and the message.
struct MessageFrames {
  /// The most bytes of one message that are taken.
  let limit: Int
  private var bytes: [UInt8] = []
  private var position = 0

  init(limit: Int) {
    self.limit = limit
  }

  /// No byte is left.
  var isEmpty: Bool { position == bytes.count }

  /// Whether no more bytes wait than a message of the longest kind and the beginning of the next one.
  var hasRoom: Bool { bytes.count &- position <= limit &+ (1 << 20) }

  /// A message with its frame. It has less than 4 GiB.
  static func framed(_ message: [UInt8]) -> [UInt8] {
    let count = UInt32(clamping: message.count)
    return [0] + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: count >> $0) } + message
  }

  mutating func append(_ received: UnsafeRawBufferPointer) {
    if position == bytes.count {
      bytes.removeAll(keepingCapacity: true)
      position = 0
    }
    unsafe bytes.append(contentsOf: received)
  }

  /// The next message; nil: it is not there as a whole yet.
  ///
  /// - Throws: for a frame that is compressed, or longer than the limit. The stream can't be read on then.
  mutating func next() throws(WireError) -> [UInt8]? {
    guard bytes.count &- position >= 5 else { return nil }
    guard bytes[position] == 0 else { throw .malformed }
    let count = bytes[(position &+ 1)..<(position &+ 5)].reduce(0) { $0 << 8 | Int($1) }
    guard count <= limit else { throw .malformed }
    let start = position &+ 5
    guard bytes.count - start >= count else { return nil }
    position = start + count
    defer { dropRead() }
    return Array(bytes[start..<position])
  }

  /// Keeps a long stream from growing.
  private mutating func dropRead() {
    guard position > 64 * 1024, position > bytes.count / 2 else { return }
    bytes.removeSubrange(..<position)
    position = 0
  }
}
