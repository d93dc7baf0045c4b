import Glibc
import SecretMemory

/// Standard input as bytes that leave no copy; on a terminal, what a person types.
enum SecretInput {
  /// Reads to the end of standard input; from a terminal one line, without its line feed.
  ///
  /// - Throws: `Failure` where more than `limit` bytes come, or nothing can be read.
  static func read(prompt: String, hidden: Bool, limit: Int) throws -> SecretBytes {
    guard hidden, isatty(STDIN_FILENO) == 1 else { return try unsafe collect(limit: limit) { _ in false } }
    StandardError.write(prompt)
    let secret = try withoutEcho { try readLine(limit: limit) }
    StandardError.write("\n")
    return secret
  }

  private static func readLine(limit: Int) throws -> SecretBytes {
    var line = try unsafe collect(limit: limit) { unsafe $0.last == 0x0A }
    let endsLine = unsafe line.withUnsafeBytes { unsafe $0.last == 0x0A }
    if endsLine { try line.resize(to: line.count - 1) }
    return line
  }

  private static func collect(
    limit: Int, until isEnd: (UnsafeRawBufferPointer) -> Bool
  ) throws -> SecretBytes {
    var input = try SecretBytes()
    var chunk = try SecretBytes(pinnable: 64 * 1024)
    while true {
      // SAFETY: the chunk says how long it is.
      let count = unsafe chunk.withUnsafeMutableBytes {
        unsafe Glibc.read(STDIN_FILENO, $0.baseAddress, $0.count)
      }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw Failure("standard input", "it can't be read") }
      try unsafe chunk.withUnsafeBytes {
        try unsafe input.append(UnsafeRawBufferPointer(rebasing: $0[..<count]))
      }
      guard input.count <= limit else { throw Failure("standard input", "more than \(limit) bytes came") }
      let isComplete = unsafe input.withUnsafeBytes(isEnd)
      if count == 0 || isComplete { return input }
    }
  }

  private static func withoutEcho(_ body: () throws -> SecretBytes) throws -> SecretBytes {
    var settings = termios()
    unsafe tcgetattr(STDIN_FILENO, &settings)
    let before = settings
    settings.c_lflag &= ~tcflag_t(ECHO)
    unsafe tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings)
    defer {
      var before = before
      unsafe tcsetattr(STDIN_FILENO, TCSAFLUSH, &before)
    }
    return try body()
  }
}
