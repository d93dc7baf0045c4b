import Glibc
import Model
import Platform

extension Caller.Identity {
  /// SHA-256 of the executable in hexadecimal digits; nil: it can't be read.
  func digestOfExecutable() -> String? {
    guard let process, let executable else { return nil }
    let link = ProcessFiles(process.number).executableLink
    guard FileID(link) == executable.file else { return nil }
    return Self.digest(ofFile: link)
  }

  static func digest(ofFile path: String) -> String? {
    guard let file = unsafe fopen(path, "re") else { return nil }
    defer { unsafe fclose(file) }
    var hash = SHA256Hasher()
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while case let count = unsafe fread(&chunk, 1, chunk.count, file), count > 0 {
      hash.update(chunk.span.extracting(..<count))
    }
    return hash.finalize().map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
