import Glibc

// Calls that only Linux has, or that Glibc's Swift module leaves out.

extension System {
  private typealias CopyFileRange =
    @convention(c) (Int32, UnsafeMutablePointer<Int>?, Int32, UnsafeMutablePointer<Int>?, Int, UInt32) -> Int
  private typealias Sendfile = @convention(c) (Int32, Int32, UnsafeMutablePointer<Int>?, Int) -> Int
  private typealias Splice =
    @convention(c) (Int32, UnsafeMutablePointer<Int>?, Int32, UnsafeMutablePointer<Int>?, Int, UInt32) -> Int
  private typealias Fallocate = @convention(c) (Int32, Int32, Int, Int) -> Int32
  private typealias Linkat =
    @convention(c) (Int32, UnsafePointer<CChar>, Int32, UnsafePointer<CChar>, Int32) -> Int32

  private typealias ErrorName = @convention(c) (Int32) -> UnsafePointer<CChar>?

  /// `EINVAL` and the like.
  static func name(of error: Errno) -> String {
    let name = unsafe function("strerrorname_np", as: ErrorName.self)
    return unsafe name(error.code).map { unsafe String(cString: $0) } ?? "?"
  }

  /// O_TMPFILE with the O_DIRECTORY that belongs to it.
  static let temporaryFile = Int32(0o20_000_000) | O_DIRECTORY
  static let seekData: Int32 = 3
  static let seekHole: Int32 = 4

  static func copyRange(from source: OpenFile, to target: OpenFile, _ count: Int) throws(Errno) -> Int {
    let copy = unsafe function("copy_file_range", as: CopyFileRange.self)
    return try check { copy(source.descriptor, nil, target.descriptor, nil, count, 0) }
  }

  static func send(from source: OpenFile, to target: OpenFile, _ count: Int) throws(Errno) -> Int {
    let send = unsafe function("sendfile", as: Sendfile.self)
    return try check { send(target.descriptor, source.descriptor, nil, count) }
  }

  static func splice(from source: OpenFile, to target: OpenFile, _ count: Int) throws(Errno) -> Int {
    let splice = unsafe function("splice", as: Splice.self)
    return try check { splice(source.descriptor, nil, target.descriptor, nil, count, 0) }
  }

  static func allocate(
    _ file: OpenFile, mode: Int32 = 0, from offset: Int = 0, _ count: Int
  ) throws(Errno) {
    let allocate = function("fallocate", as: Fallocate.self)
    _ = try check { allocate(file.descriptor, mode, offset, count) }
  }

  static func linkOpenFile(_ file: OpenFile, _ path: String) throws(Errno) {
    let linkat = unsafe function("linkat", as: Linkat.self)
    let source = "/proc/self/fd/\(file.descriptor)"
    _ = try check { unsafe linkat(AT_FDCWD, source, AT_FDCWD, path, 0x400 /* AT_SYMLINK_FOLLOW */) }
  }

  static func seek(_ file: OpenFile, _ offset: Int, _ whence: Int32) throws(Errno) -> Int {
    try check { lseek(file.descriptor, offset, whence) }
  }

  static func mkdir(_ path: String, mode: mode_t) throws(Errno) {
    _ = try check { unsafe Glibc.mkdir(path, mode) }
  }

  static func access(_ path: String, _ mode: Int32) throws(Errno) {
    _ = try check { unsafe Glibc.access(path, mode) }
  }

  /// Two ends of a new pipe.
  static func pipe() throws(Errno) -> (reading: OpenFile, writing: OpenFile) {
    var ends: [Int32] = [0, 0]
    _ = try check { unsafe Glibc.pipe(&ends) }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return (OpenFile(descriptor: ends[0]), OpenFile(descriptor: ends[1]))
  }
}
