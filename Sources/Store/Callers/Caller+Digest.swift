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
    guard let file = try? Descriptor(path, .reading) else { return nil }
    var hash = SHA256Hasher()
    while true {
      guard let chunk = try? file.read(1 << 16) else { return nil }
      if chunk.isEmpty { break }
      hash.update(chunk.span)
    }
    return hash.finalize().map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}
