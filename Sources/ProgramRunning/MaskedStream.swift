import Platform
import SecretMemory

/// A stream of a program's output that goes through a mask.
final class MaskedStream {
  /// So long a byte that may begin an occurrence is held back.
  private static let patience = Duration.milliseconds(20)
  /// PIPE_BUF: with POLLOUT, a pipe has room for as much.
  private static let chunk = 4096
  /// So much waits before no more is read, and the program has to wait.
  private static let limit = 64 * 1024

  private var source: KeptDescriptor?
  private let target: Int32
  private let mask: OutputMask
  private var input: SecretBytes
  private var waiting: OutputBuffer
  private var isBroken = false
  /// When bytes that are held back are passed on.
  private(set) var deadline: ContinuousClock.Instant?

  init(
    _ source: consuming Descriptor, to target: Int32, _ patterns: MaskPatterns,
    _ destination: OutputMask.Destination
  ) throws(SecretMemoryError) {
    self.source = KeptDescriptor(source)
    self.target = target
    mask = try OutputMask(patterns, for: destination)
    input = try SecretBytes(count: 16 * 1024)
    waiting = try OutputBuffer()
  }

  /// Whether everything was written.
  var isDone: Bool { source == nil && waiting.count == 0 }

  /// For reading, and for writing.
  var entries: [Poll.Entry] {
    [
      Poll.Entry(waiting.count < Self.limit ? number : nil),
      Poll.Entry(waiting.count > 0 ? target : nil, .output),
    ]
  }

  private var number: Int32? { source?.number }

  /// Reads once. The end of the stream closes it.
  func read() throws(SecretMemoryError) {
    guard let source else { return }
    var room = input.mutableSpan
    // EIO: no process has the terminal open any more.
    let count = (try? source.descriptor.read(into: &room)) ?? 0
    guard count > 0 else { return try close() }
    guard !isBroken else { return }
    try input.withSpan(0..<count) { bytes throws(SecretMemoryError) in
      try mask.process(bytes, into: &waiting)
    }
    deadline = mask.isHolding ? .now + Self.patience : nil
  }

  /// Writes once.
  func write() {
    let written = waiting.withFirst(Self.chunk) { bytes in
      (try? Files.write(bytes, to: target)) == nil ? nil : bytes.count
    }
    if let written { return waiting.drop(written) }
    // The reader is gone: so is it for the program, by SIGPIPE or EPIPE.
    waiting.drop(.max)
    isBroken = true
    (source, deadline) = (nil, nil)
  }

  /// Passes on what was held back for too long.
  func flush(at time: ContinuousClock.Instant) throws(SecretMemoryError) {
    guard let deadline, deadline <= time else { return }
    self.deadline = nil
    try mask.flush(into: &waiting)
  }

  /// After the end of the program: takes what it has written, and closes the stream, also where another process may still
  /// write to it.
  func drain() throws(SecretMemoryError) {
    while let number, Poll.isReady(number) { try read() }
    try close()
  }

  private func close() throws(SecretMemoryError) {
    guard source != nil else { return }
    (source, deadline) = (nil, nil)
    if !isBroken { try mask.flush(into: &waiting) }
  }
}
