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
  /// Why `target` takes nothing any more.
  private var failure: Errno?
  /// Why output was lost; nil: all of it was written so far.
  private(set) var loss: Errno?
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

  /// For reading, and for writing. Where nothing waits, an error of the target is waited for: a pipe without a reader has one.
  var entries: [Poll.Entry] {
    [
      Poll.Entry(waiting.count < Self.limit ? number : nil),
      waiting.count > 0 ? Poll.Entry(target, .output) : Poll.Entry(number == nil ? nil : target, []),
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
    try input.withSpan(0..<count) { bytes throws(SecretMemoryError) in
      try mask.process(bytes, into: &waiting)
    }
    deadline = mask.isHolding ? .now + Self.patience : nil
  }

  /// Writes once. The target is ready: where nothing waits, it has an error.
  func write() {
    guard waiting.count > 0 else { return giveUp(.EPIPE) }
    do throws(Errno) {
      waiting.drop(
        try waiting.withFirst(Self.chunk) { (bytes) throws(Errno) in try Files.writeSome(bytes, to: target) })
    } catch {
      // A terminal or a socket that does not block may have too little room.
      if error != .EAGAIN { giveUp(error) }
    }
  }

  /// The target takes nothing any more. So it is for the program, by SIGPIPE or EPIPE with its next write.
  private func giveUp(_ error: Errno) {
    failure = error
    if waiting.count > 0 || mask.isHolding { loss = error }
    noteUnread(error)
    waiting.drop(.max)
    (source, deadline) = (nil, nil)
  }

  /// Bytes that the program has written, and that were not read, are lost too.
  private func noteUnread(_ error: Errno) {
    guard let source, Poll.isReady(source.number) else { return }
    var room = input.mutableSpan
    let count = (try? source.descriptor.read(into: &room)) ?? 0
    guard count > 0 else { return }
    loss = error
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
    if failure == nil { try mask.flush(into: &waiting) }
  }
}
