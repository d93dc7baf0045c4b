import Model
import Platform
package import SecretMemory

/// Bytes from a descriptor that leave no copy.
package enum SecretReader {
  /// The longest line that `readLine` takes where no other limit is given, in bytes.
  package static let lineLimit = 8 * 1024

  /// One line without its line feed, and not a byte after it: the next reader wants those.
  ///
  /// - Throws: `Failure` where more than `limit` bytes come, or nothing can be read.
  package static func readLine(descriptor: Int32, limit: Int = lineLimit) throws -> SecretBytes {
    if let line = try nextLine(descriptor: descriptor, limit: limit) { return line }
    return try SecretBytes()
  }

  /// The same; nil: the input has ended.
  package static func nextLine(descriptor: Int32, limit: Int = lineLimit) throws -> SecretBytes? {
    var line = try collect(descriptor, limit: limit, chunk: 1) { $0.last == 0x0A }
    guard line.count > 0 else { return nil }
    if line.span.last == 0x0A { try line.resize(to: line.count - 1) }
    return line
  }

  /// Everything up to the end.
  ///
  /// - Throws: as `readLine(descriptor:limit:)`.
  package static func read(descriptor: Int32, limit: Int) throws -> SecretBytes {
    try collect(descriptor, limit: limit, chunk: 16 * 1024) { _ in false }
  }

  private static func text(_ limit: Int) -> String {
    limit < 1 << 20 ? "\(limit) bytes" : "\(limit >> 20) MiB"
  }

  private static func collect(
    _ descriptor: Int32, limit: Int, chunk size: Int, until isEnd: (Span<UInt8>) -> Bool
  ) throws -> SecretBytes {
    var input = try SecretBytes()
    var chunk = try SecretBytes(pinnable: size)
    while true {
      let count = try read(descriptor, into: &chunk)
      try input.append(chunk.span.extracting(..<count))
      guard input.count <= limit else { throw Failure(nil, "more than \(Self.text(limit)) came") }
      if count == 0 || isEnd(input.span) { return input }
    }
  }

  private static func read(_ descriptor: Int32, into chunk: inout SecretBytes) throws -> Int {
    var room = chunk.mutableSpan
    do throws(Errno) { return try Files.read(into: &room, from: descriptor) } catch {
      throw Failure(nil, "the input can't be read: \(error)")
    }
  }
}
