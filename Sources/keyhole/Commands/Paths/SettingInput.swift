import Model
import Platform

/// Standard input as the value of a setting, in ordinary memory.
enum SettingInput {
  /// Reads to the end of standard input.
  ///
  /// - Throws: `Failure` if read(2) fails, or if there are more than `limit` bytes.
  static func read(limit: Int) throws -> [UInt8] {
    var input: [UInt8] = []
    while true {
      let chunk: [UInt8]
      do { chunk = try Descriptor(duplicating: StandardStream.input.number).read(64 * 1024) } catch {
        throw Failure(nil, "standard input can't be read: \(error)")
      }
      if chunk.isEmpty { return input }
      input += chunk
      guard input.count <= limit else {
        throw Failure(nil, "standard input has more than the \(limit) bytes that a setting may have")
      }
    }
  }
}
