import Glibc

/// The names in a folder; none where it can't be read.
package func names(in path: String) -> [String] {
  namesInBytes(in: path).map { String(decoding: $0, as: UTF8.self) }
}

/// The same as the file system has it: a name need not be UTF-8.
package func namesInBytes(in path: String) -> [[UInt8]] {
  guard let folder = unsafe opendir(path) else { return [] }
  defer { unsafe closedir(folder) }
  var names: [[UInt8]] = []
  while let entry = unsafe readdir(folder) {
    let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
      unsafe Array(bytes.prefix { $0 != 0 })
    }
    if name != Array(".".utf8), name != Array("..".utf8) { names.append(name) }
  }
  return names
}

/// The whole file; empty where it can't be read.
package func readFile(_ path: String) -> String {
  // SAFETY: a variadic call without its variable part.
  let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
  guard descriptor >= 0 else { return "" }
  defer { close(descriptor) }
  var bytes: [UInt8] = []
  var chunk = [UInt8](repeating: 0, count: 16 * 1024)
  while true {
    // SAFETY: the chunk says how long it is.
    let count = unsafe chunk.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
    guard count > 0 else { return String(decoding: bytes, as: UTF8.self) }
    bytes += chunk[..<count]
  }
}
