/// Wakes a thread that waits in poll(2). Any thread may use it.
package final class WakePipe: Sendable {
  private let reader: Descriptor
  private let writer: Descriptor

  /// Readable after `wake`, until `clear`. For `Poll`.
  package var readEnd: Int32 { reader.number }

  /// - Throws: EMFILE, ENFILE.
  package init() throws(Errno) {
    let pipe = try PipeEnds()
    // A full pipe must not block the caller of `wake`.
    try pipe.reader.setNonBlocking()
    try pipe.writer.setNonBlocking()
    reader = pipe.reader
    writer = pipe.writer
  }

  package func wake() {
    // EAGAIN: it is full, and so readable.
    try? writer.write([0x0A])
  }

  /// Makes it not readable, until the next `wake`.
  package func clear() {
    var bytes = [UInt8](repeating: 0, count: 16)
    var span = bytes.mutableSpan
    while let count = try? reader.read(into: &span), count > 0 {}
  }

  /// False: `wake` was not called by then; nil: there is no limit. It stays readable.
  package func wait(until deadline: ContinuousClock.Instant?) -> Bool {
    (try? Poll.wait(for: [Poll.Entry(readEnd)], until: deadline)) == [true]
  }
}
