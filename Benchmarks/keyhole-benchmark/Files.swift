import Glibc

/// A folder held open, so that what is measured below it is the file system and not the walk to it.
struct Folder: ~Copyable {
  let path: String
  private let descriptor: Int32

  init(_ path: String) throws(Failure) {
    self.path = path
    descriptor = try checked(unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), path)
  }

  deinit {
    close(descriptor)
  }

  func stat(_ name: String) throws(Failure) {
    var status = Glibc.stat()
    try checked(unsafe fstatat(descriptor, name, &status, 0), name)
  }

  /// Opens, reads once into a buffer larger than the value, closes.
  func read(_ name: String) throws(Failure) {
    let file = try File(opening: name, below: descriptor, flags: O_RDONLY)
    try file.read()
    try file.close()
  }

  /// Opens with O_TRUNC, writes at once, closes: the value is committed when this returns.
  func write(_ text: String, to name: String) throws(Failure) {
    let file = try File(opening: name, below: descriptor, flags: O_WRONLY | O_CREAT | O_TRUNC)
    try file.write(text)
    try file.close()
  }

  /// The calls of a shell for `echo text > name`: the first close comes before anything is written.
  func echo(_ text: String, to name: String) throws(Failure) {
    let opened = try File(opening: name, below: descriptor, flags: O_WRONLY | O_CREAT | O_TRUNC)
    let standardOutput = try opened.duplicate()
    try opened.close()
    try standardOutput.write(text)
    try standardOutput.close()
  }

  /// Puts a new file in the place of the old one, as editors and Foundation do.
  func replace(_ name: String, with text: String) throws(Failure) {
    try write(text, to: name + ".new")
    guard unsafe renameat(descriptor, name + ".new", descriptor, name) == 0 else {
      throw Failure.system(name)
    }
  }

  /// The attribute of a file that stays open, which makes it one request to the file system.
  func file(_ name: String) throws(Failure) -> File {
    try File(opening: name, below: descriptor, flags: O_RDONLY)
  }
}

/// An open file. Closing reports what the file system said; one that is dropped is closed silently.
struct File: ~Copyable {
  private let name: String
  private var descriptor: Int32

  init(opening name: String, below folder: Int32, flags: Int32) throws(Failure) {
    self.name = name
    descriptor = try checked(unsafe openat(folder, name, flags | O_CLOEXEC, 0o600), name)
  }

  private init(name: String, descriptor: Int32) {
    self.name = name
    self.descriptor = descriptor
  }

  deinit {
    if descriptor >= 0 { _ = Glibc.close(descriptor) }
  }

  func duplicate() throws(Failure) -> File {
    File(name: name, descriptor: try checked(dup(descriptor), name))
  }

  func read() throws(Failure) {
    let count = unsafe withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 8) { buffer in
      unsafe Glibc.read(descriptor, buffer.baseAddress, buffer.count)
    }
    guard try checked(count, name) > 0 else { throw Failure("\(name): read as empty") }
  }

  func write(_ text: String) throws(Failure) {
    var text = text
    let count = text.withUTF8 { unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
    guard try checked(count, name) == text.utf8.count else { throw Failure("\(name): written in part") }
  }

  func attribute(_ attribute: String) throws(Failure) {
    let size = unsafe withUnsafeTemporaryAllocation(byteCount: 256, alignment: 8) { buffer in
      unsafe fgetxattr(descriptor, attribute, buffer.baseAddress, buffer.count)
    }
    try checked(size, "\(attribute) of \(name)")
  }

  consuming func close() throws(Failure) {
    let result = Glibc.close(descriptor)
    let name = name
    descriptor = -1
    try checked(result, name)
  }
}

private typealias GetAttribute =
  @convention(c) (Int32, UnsafePointer<CChar>, UnsafeMutableRawPointer?, Int) -> Int

/// SAFETY: the signature is that of <sys/xattr.h>, which Swift's Glibc module leaves out.
private let fgetxattr: GetAttribute = {
  guard let symbol = unsafe dlsym(nil, "fgetxattr") else { fatalError("this libc has no fgetxattr") }
  return unsafe unsafeBitCast(symbol, to: GetAttribute.self)
}()

/// Makes a folder, its parents too. One that is there is no error.
func makeFolder(_ path: String) throws(Failure) {
  if unsafe mkdir(path, 0o700) == 0 || errno == EEXIST { return }
  guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash > path.startIndex else {
    throw Failure.system(path)
  }
  try makeFolder(String(path[..<slash]))
  try checked(unsafe mkdir(path, 0o700), path)
}

/// A whole file of text.
func text(of path: String) throws(Failure) -> String {
  let descriptor = try checked(unsafe open(path, O_RDONLY | O_CLOEXEC), path)
  defer { close(descriptor) }
  var whole: [UInt8] = []
  while true {
    let bytes = unsafe [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, count in
      unsafe count = max(0, Glibc.read(descriptor, buffer.baseAddress, buffer.count))
    }
    guard !bytes.isEmpty else { return String(decoding: whole, as: UTF8.self) }
    whole += bytes
  }
}

/// Adds text to the end of a file, which is made where it is missing.
func appendText(_ text: String, to path: String) throws(Failure) {
  let descriptor = try checked(unsafe open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600), path)
  defer { close(descriptor) }
  var text = text
  let count = text.withUTF8 { unsafe write(descriptor, $0.baseAddress, $0.count) }
  guard try checked(count, path) == text.utf8.count else { throw Failure("\(path): written in part") }
}
