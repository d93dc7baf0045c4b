import Glibc

/// A folder of a test's own.
enum SuiteFolder {
  static func make() -> String {
    let base = unsafe getenv("TMPDIR").map { unsafe String(cString: $0) } ?? "/tmp"
    var template = Array("\(base)/kh-formats.XXXXXX".utf8CString)
    guard unsafe mkdtemp(&template) != nil else { return base }
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Removes a folder and the files in it.
  static func remove(_ path: String) {
    guard let folder = unsafe opendir(path) else { return }
    defer { unsafe closedir(folder) }
    while let entry = unsafe readdir(folder) {
      let name = unsafe withUnsafeBytes(of: &entry.pointee.d_name) {
        unsafe String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
      }
      guard name != ".", name != ".." else { continue }
      let child = "\(path)/\(name)"
      if unsafe unlink(child) != 0 { remove(child) }
    }
    unsafe rmdir(path)
  }
}
