import Fuse
import Glibc
import Platform

/// System calls as a program makes them, each with its error number.
enum Client {
  private typealias Text = UnsafePointer<CChar>
  private typealias Setter = @convention(c) (Text, Text, UnsafeRawPointer, Int, Int32) -> Int32
  private typealias Getter = @convention(c) (Text, Text, UnsafeMutableRawPointer, Int) -> Int
  private typealias Lister = @convention(c) (Text, UnsafeMutablePointer<CChar>, Int) -> Int

  static func open(_ path: [UInt8], _ flags: Int32) throws(Errno) -> Int32 {
    let path = path.map { CChar(bitPattern: $0) } + [0]
    return Int32(try check { unsafe Int(Glibc.open(path, flags, 0o600)) })
  }

  static func open(_ path: String, _ flags: Int32 = O_RDONLY) throws(Errno) -> Int32 {
    try open(Array(path.utf8), flags)
  }

  static func close(_ descriptor: Int32) throws(Errno) {
    _ = try check { Int(Glibc.close(descriptor)) }
  }

  static func read(_ descriptor: Int32, _ count: Int = 65536) throws(Errno) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    let got = try check { unsafe Glibc.read(descriptor, &bytes, count) }
    return Array(bytes.prefix(got))
  }

  static func write(_ descriptor: Int32, _ bytes: [UInt8]) throws(Errno) -> Int {
    try check { unsafe Glibc.write(descriptor, bytes, bytes.count) }
  }

  static func contents(_ path: String) throws(Errno) -> [UInt8] {
    let descriptor = try open(path)
    defer { try? close(descriptor) }
    return try read(descriptor)
  }

  static func put(_ bytes: [UInt8], in path: String, _ flags: Int32 = O_CREAT | O_TRUNC) throws(Errno) {
    let descriptor = try open(path, O_WRONLY | flags)
    defer { try? close(descriptor) }
    _ = try write(descriptor, bytes)
  }

  static func size(_ path: String) throws(Errno) -> Int {
    var status = stat()
    _ = try check { unsafe Int(stat(path, &status)) }
    return status.st_size
  }

  static func rename(_ old: String, _ new: String) throws(Errno) {
    _ = try check { unsafe Int(Glibc.rename(old, new)) }
  }

  static func setAttribute(_ path: String, _ name: String, _ value: [UInt8]) throws(Errno) {
    let setter = unsafe cFunction("setxattr", as: Setter.self)
    _ = try check { unsafe Int(setter(path, name, value, value.count, 0)) }
  }

  static func attribute(_ path: String, _ name: String, room: Int = 4096) throws(Errno) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: max(room, 1))
    let getter = unsafe cFunction("getxattr", as: Getter.self)
    let got = try check { unsafe getter(path, name, &bytes, room) }
    return room == 0 ? [UInt8](repeating: 0, count: got) : Array(bytes.prefix(got))
  }

  static func attributeNames(_ path: String) throws(Errno) -> String {
    var bytes = [CChar](repeating: 0, count: 4096)
    let lister = unsafe cFunction("listxattr", as: Lister.self)
    let got = try check { unsafe lister(path, &bytes, bytes.count) }
    return String(decoding: bytes.prefix(got).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  static func names(_ path: String) throws(Errno) -> [String] {
    guard let directory = unsafe opendir(path) else { throw Errno(rawValue: errno) }
    defer { unsafe closedir(directory) }
    var names: [String] = []
    while let entry = unsafe readdir(directory) {
      let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { tuple in
        unsafe tuple.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
      }
      names.append(name)
    }
    return names
  }

  private static func check(_ call: () -> Int) throws(Errno) -> Int {
    let result = call()
    if result < 0 { throw Errno(rawValue: errno) }
    return result
  }
}
