import Glibc
import Model
import Platform

/// Standard input as the value of a setting, in ordinary memory.
enum SettingInput {
  /// Reads to the end of standard input.
  ///
  /// - Throws: `Failure` if read(2) fails, or if there are more than `limit` bytes.
  static func read(limit: Int) throws -> [UInt8] {
    var input: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 64 * 1024)
    while true {
      // SAFETY: the buffer says how long it is.
      let count = unsafe chunk.withUnsafeMutableBytes {
        unsafe Glibc.read(STDIN_FILENO, $0.baseAddress, $0.count)
      }
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw Failure(nil, "standard input can't be read: \(systemMessage(errno))") }
      if count == 0 { return input }
      input += chunk[..<count]
      guard input.count <= limit else {
        throw Failure(nil, "standard input has more than the \(limit) bytes that a setting may have")
      }
    }
  }
}
