package import SecretMemory

/// Replaces the patterns in a stream of output, byte by byte as it comes. It guards against accidents: a program that means
/// to show a secret writes it in another form.
///
/// A byte is masked if it is a part of any occurrence of a pattern; each run of masked bytes becomes one marker. A byte is held
/// back as long as it may become a part of an occurrence: at most the longest pattern less one byte, and the ends of lines in it.
package final class OutputMask {
  /// Written in place of a run of masked bytes.
  package static let marker = "[masked]"

  /// The other end of the stream.
  package enum Destination: Sendable {
    /// While its alternate screen is on, nothing is masked: there programs place text by position, and a marker would move it.
    case terminal
    case file
  }

  private let patterns: MaskPatterns
  private let destination: Destination
  private var text = PatternAutomaton.State()
  private var digits = DigitLines()
  private var screen = AlternateScreen()
  /// The bytes that are held back, by their position in the stream; and whether each is masked.
  private var held: SecretBytes
  private var isMasked: [Bool]
  /// How many bytes came, and how many of them were passed on.
  private var (position, passed) = (0, 0)
  private var isInRun = false

  /// - Throws: `exhausted`: there is no more locked memory.
  package init(_ patterns: MaskPatterns, for destination: Destination) throws(SecretMemoryError) {
    self.patterns = patterns
    self.destination = destination
    var size = 64
    while size <= max(patterns.text.longest, DigitLines.longest(of: patterns.digits)) { size *= 2 }
    held = try SecretBytes(count: size)
    isMasked = [Bool](repeating: false, count: size)
  }

  /// Whether bytes are held back.
  package var isHolding: Bool { passed < position }

  /// Takes the next bytes, and adds what can be passed on to `output`.
  package func process(_ bytes: Span<UInt8>, into output: inout OutputBuffer) throws(SecretMemoryError) {
    for index in bytes.indices { try take(bytes[index], &output) }
  }

  /// Passes on what is held back. Where the rest of an occurrence follows, that is masked all the same.
  package func flush(into output: inout OutputBuffer) throws(SecretMemoryError) {
    try pass(upTo: position, &output)
  }

  private func take(_ byte: UInt8, _ output: inout OutputBuffer) throws(SecretMemoryError) {
    let wasOn = screen.isOn
    if destination == .terminal { screen.take(byte) }
    guard !wasOn else {
      (text, digits) = (PatternAutomaton.State(), DigitLines())
      isInRun = false
      return try output.add(byte)
    }
    hold(byte)
    try pass(upTo: screen.isOn ? position : min(position - text.depth, digits.start), &output)
  }

  private func hold(_ byte: UInt8) {
    held[slot(position)] = byte
    isMasked[slot(position)] = false
    text = patterns.text.next(text, byte)
    digits.take(byte, at: position, patterns.digits)
    position += 1
    mask(from: position - text.match)
    mask(from: digits.matchStart)
  }

  private func mask(from start: Int) {
    guard start < position else { return }
    for index in max(start, passed)..<position { isMasked[slot(index)] = true }
  }

  private func slot(_ position: Int) -> Int { position & (isMasked.count - 1) }

  private func pass(upTo end: Int, _ output: inout OutputBuffer) throws(SecretMemoryError) {
    while passed < end {
      let slot = slot(passed)
      if !isMasked[slot] {
        try output.add(held[slot])
      } else if !isInRun {
        for byte in Self.marker.utf8 { try output.add(byte) }
      }
      isInRun = isMasked[slot]
      held[slot] = 0
      passed += 1
    }
  }
}

/// Output that waits to be written: what is not masked may be a secret all the same.
package struct OutputBuffer: ~Copyable {
  private var bytes: SecretBytes
  private var (start, end) = (0, 0)

  package init() throws(SecretMemoryError) { bytes = try SecretBytes(count: 4096) }

  /// How many bytes wait.
  package var count: Int { end - start }

  /// The first of the bytes that wait, `limit` at most.
  package borrowing func withFirst<Result, Failure: Error>(
    _ limit: Int, _ body: (Span<UInt8>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try bytes.withSpan(start..<min(end, start + limit), body)
  }

  /// Takes away the first bytes.
  package mutating func drop(_ number: Int) {
    start = min(end, start + number)
    if start == end { (start, end) = (0, 0) }
  }

  mutating func add(_ byte: UInt8) throws(SecretMemoryError) {
    if end == bytes.count { try makeRoom() }
    bytes[end] = byte
    end += 1
  }

  private mutating func makeRoom() throws(SecretMemoryError) {
    guard start > 0 else { return try bytes.resize(to: end * 2) }
    for index in start..<end { bytes[index - start] = bytes[index] }
    (start, end) = (0, end - start)
  }
}
