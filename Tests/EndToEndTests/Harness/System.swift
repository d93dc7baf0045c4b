import Glibc

/// System calls as the tests need them: an `Errno` is thrown, EINTR is tried again.
enum System {
  @discardableResult
  static func check<Number: SignedInteger>(_ call: () -> Number) throws(Errno) -> Number {
    while true {
      let result = call()
      if result != -1 { return result }
      if errno != EINTR { throw Errno.last }
    }
  }

  static func mkdir(_ path: String) throws(Errno) {
    _ = try check { unsafe Glibc.mkdir(path, 0o777) }
  }

  static func rmdir(_ path: String) throws(Errno) {
    _ = try check { unsafe Glibc.rmdir(path) }
  }

  static func unlink(_ path: String) throws(Errno) {
    _ = try check { unsafe Glibc.unlink(path) }
  }

  static func rename(_ old: String, _ new: String) throws(Errno) {
    _ = try check { unsafe Glibc.rename(old, new) }
  }

  static func link(_ old: String, _ new: String) throws(Errno) {
    _ = try check { unsafe Glibc.link(old, new) }
  }

  static func symlink(_ target: String, _ path: String) throws(Errno) {
    _ = try check { unsafe Glibc.symlink(target, path) }
  }

  static func mknod(_ path: String, kind: mode_t, device: dev_t = 0) throws(Errno) {
    _ = try check { unsafe Glibc.mknod(path, kind | 0o600, device) }
  }

  static func truncate(_ path: String, _ size: Int) throws(Errno) {
    _ = try check { unsafe Glibc.truncate(path, size) }
  }

  static func chmod(_ path: String, _ mode: mode_t) throws(Errno) {
    _ = try check { unsafe Glibc.chmod(path, mode) }
  }

  static func chown(_ path: String, _ user: uid_t, _ group: gid_t) throws(Errno) {
    _ = try check { unsafe Glibc.chown(path, user, group) }
  }

  /// Sets the time of the last change, and leaves that of the last access.
  static func setModified(_ path: String, seconds: Int, nanoseconds: Int = 0) throws(Errno) {
    let omit = timespec(tv_sec: 0, tv_nsec: 0x3FFF_FFFE)  // UTIME_OMIT
    let times = [omit, timespec(tv_sec: seconds, tv_nsec: nanoseconds)]
    _ = try check { unsafe utimensat(AT_FDCWD, path, times, 0) }
  }

  static func status(_ path: String) throws(Errno) -> stat {
    var result = stat()
    _ = try check { unsafe lstat(path, &result) }
    return result
  }

  static func exists(_ path: String) -> Bool {
    (try? status(path)) != nil
  }

  /// The names in a directory, without `.` and `..`, in byte order.
  static func names(_ path: String) throws(Errno) -> [String] {
    try entries(path).keys.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
  }

  /// The names in a directory with the inode numbers that the listing itself tells.
  static func entries(_ path: String) throws(Errno) -> [String: ino_t] {
    Dictionary(try listing(path).map { ($0.name, $0.number) }) { $1 }
  }

  /// The entries of readdir(3), one after the other, without `.` and `..`.
  static func listing(_ path: String) throws(Errno) -> [(name: String, number: ino_t)] {
    guard let directory = unsafe opendir(path) else { throw Errno.last }
    defer { unsafe closedir(directory) }
    var result: [(name: String, number: ino_t)] = []
    errno = 0
    while let entry = unsafe readdir(directory) {
      let name = unsafe withUnsafeBytes(of: entry.pointee.d_name) { bytes in
        unsafe String(decoding: bytes.prefix { byte in byte != 0 }, as: UTF8.self)
      }
      if name != "." && name != ".." { unsafe result.append((name, entry.pointee.d_ino)) }
      errno = 0
    }
    if errno != 0 { throw Errno.last }
    return result
  }

  /// Every regular file below a folder, as paths relative to it.
  static func files(below root: String, _ prefix: String = "") -> Set<String> {
    var result: Set<String> = []
    for name in (try? names(root)) ?? [] {
      let path = "\(root)/\(name)"
      guard let status = try? status(path) else { continue }
      if status.st_mode & S_IFMT == S_IFDIR {
        result.formUnion(files(below: path, "\(prefix)\(name)/"))
      } else {
        result.insert(prefix + name)
      }
    }
    return result
  }

  static func target(ofLink path: String) -> String {
    var target = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = unsafe readlink(path, &target, target.count)
    return String(decoding: target.prefix(max(count, 0)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  static func read(_ path: String) throws(Errno) -> [UInt8] {
    try OpenFile(path, O_RDONLY).readAll()
  }

  static func text(_ path: String) throws(Errno) -> String {
    String(decoding: try read(path), as: UTF8.self)
  }

  /// The calls of `printf … > path`: open with O_CREAT and O_TRUNC, write, close; the first error is thrown.
  static func write(_ path: String, _ bytes: [UInt8]) throws(Errno) {
    let file = try OpenFile(path, O_WRONLY | O_CREAT | O_TRUNC)
    if !bytes.isEmpty { try file.write(bytes) }
    try file.close()
  }

  static func write(_ path: String, _ text: String) throws(Errno) {
    try write(path, Array(text.utf8))
  }
}

// MARK: - Calls that Glibc's Swift module does not show

extension System {
  /// A function of the C library by its name: the module map leaves out what needs `_GNU_SOURCE`, and variadics.
  static func function<Function>(_ name: String, as type: Function.Type) -> Function {
    // SAFETY: the name and the type of each use below are those of the C library's own declaration.
    guard let symbol = unsafe dlsym(nil, name) else { preconditionFailure("The C library has no \(name).") }
    return unsafe unsafeBitCast(symbol, to: type)
  }

  private typealias Renameat2 =
    @convention(c) (Int32, UnsafePointer<CChar>, Int32, UnsafePointer<CChar>, UInt32) -> Int32
  private typealias Getxattr =
    @convention(c) (UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafeMutableRawPointer?, Int) -> Int
  private typealias Setxattr =
    @convention(c) (UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafeRawPointer?, Int, Int32) -> Int32
  private typealias Fsetxattr =
    @convention(c) (Int32, UnsafePointer<CChar>, UnsafeRawPointer?, Int, Int32) -> Int32
  private typealias Listxattr =
    @convention(c) (UnsafePointer<CChar>, UnsafeMutablePointer<CChar>?, Int) -> Int
  private typealias Removexattr = @convention(c) (UnsafePointer<CChar>, UnsafePointer<CChar>) -> Int32
  private typealias Syscall = @convention(c) (Int, Int, Int) -> Int

  enum RenameFlag: UInt32 {
    case noReplace = 1
    case exchange = 2
    case whiteout = 4
  }

  static func rename(_ old: String, _ new: String, flag: RenameFlag) throws(Errno) {
    let renameat2 = unsafe function("renameat2", as: Renameat2.self)
    _ = try check { unsafe renameat2(AT_FDCWD, old, AT_FDCWD, new, flag.rawValue) }
  }

  enum AttributeFlag: Int32 {
    case any = 0
    case create = 1
    case replace = 2
    case both = 3
  }

  static func setAttribute(
    _ path: String, _ name: String, _ value: String, flag: AttributeFlag = .any
  ) throws(Errno) {
    try setAttribute(path, name, bytes: Array(value.utf8), flag: flag)
  }

  static func setAttribute(
    _ path: String, _ name: String, bytes: [UInt8], flag: AttributeFlag = .any
  ) throws(Errno) {
    let setxattr = unsafe function("setxattr", as: Setxattr.self)
    _ = try check { unsafe setxattr(path, name, bytes, bytes.count, flag.rawValue) }
  }

  static func setAttribute(_ file: OpenFile, _ name: String, _ value: String) throws(Errno) {
    let fsetxattr = unsafe function("fsetxattr", as: Fsetxattr.self)
    let bytes = Array(value.utf8)
    _ = try check { unsafe fsetxattr(file.descriptor, name, bytes, bytes.count, 0) }
  }

  static func attribute(_ path: String, _ name: String) throws(Errno) -> String {
    let getxattr = unsafe function("getxattr", as: Getxattr.self)
    var bytes = [UInt8](repeating: 0, count: 65536)
    let count = try check { unsafe getxattr(path, name, &bytes, bytes.count) }
    return String(decoding: bytes.prefix(count), as: UTF8.self)
  }

  /// getxattr(2) as it is: with a capacity of 0 it tells the length.
  static func attributeLength(_ path: String, _ name: String, capacity: Int) throws(Errno) -> Int {
    let getxattr = unsafe function("getxattr", as: Getxattr.self)
    var bytes = [UInt8](repeating: 0, count: max(capacity, 1))
    return try check { unsafe getxattr(path, name, &bytes, capacity) }
  }

  static func attributeNames(_ path: String) throws(Errno) -> Set<String> {
    let listxattr = unsafe function("listxattr", as: Listxattr.self)
    var bytes = [CChar](repeating: 0, count: 65536)
    let count = try check { unsafe listxattr(path, &bytes, bytes.count) }
    let names = bytes.prefix(count).split(separator: 0)
    return Set(names.map { String(decoding: $0.map { UInt8(bitPattern: $0) }, as: UTF8.self) })
  }

  static func removeAttribute(_ path: String, _ name: String) throws(Errno) {
    let removexattr = unsafe function("removexattr", as: Removexattr.self)
    _ = try check { unsafe removexattr(path, name) }
  }

  /// A descriptor that poll(2) finds readable when the process has ended.
  static func processDescriptor(_ process: pid_t) throws(Errno) -> Int32 {
    let syscall = function("syscall", as: Syscall.self)
    return Int32(try check { syscall(434 /* SYS_pidfd_open, on every architecture */, Int(process), 0) })
  }

  private typealias Ioctl = @convention(c) (Int32, UInt, UnsafeMutablePointer<Int32>) -> Int32

  /// How much there is to read: FIONREAD.
  static func unreadBytes(_ file: OpenFile) throws(Errno) -> Int {
    let ioctl = unsafe function("ioctl", as: Ioctl.self)
    var count: Int32 = 0
    _ = try check { unsafe ioctl(file.descriptor, 0x541B, &count) }
    return Int(count)
  }

  /// Whether a terminal shows what is typed: ECHO of termios(3).
  static func echoes(_ file: OpenFile) throws(Errno) -> Bool {
    var modes = termios()
    _ = try check { unsafe tcgetattr(file.descriptor, &modes) }
    return modes.c_lflag & tcflag_t(ECHO) != 0
  }

  /// Gives a terminal another size: TIOCSWINSZ of ioctl_tty(2).
  static func setWindow(of file: OpenFile, rows: Int32, columns: Int32) throws(Errno) {
    let ioctl = unsafe function("ioctl", as: Ioctl.self)
    var size: [Int32] = [rows | columns << 16, 0]
    _ = try check { unsafe ioctl(file.descriptor, 0x5414, &size) }
  }

  private typealias Unlockpt = @convention(c) (Int32) -> Int32
  private typealias Ptsname = @convention(c) (Int32, UnsafeMutablePointer<CChar>, Int) -> Int32

  /// A new pseudo-terminal: its controlling side, and the path of the other.
  static func pseudoTerminal() throws(Errno) -> (side: OpenFile, path: String) {
    let side = try OpenFile("/dev/ptmx", O_RDWR | O_NOCTTY)
    let unlockpt = function("unlockpt", as: Unlockpt.self)
    _ = try check { unlockpt(side.descriptor) }
    let ptsname = unsafe function("ptsname_r", as: Ptsname.self)
    var name = [CChar](repeating: 0, count: 64)
    let code = unsafe ptsname(side.descriptor, &name, name.count)
    guard code == 0 else { throw Errno(code: code) }
    let bytes = name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    return (side, String(decoding: bytes, as: UTF8.self))
  }

  private typealias Unshare = @convention(c) (Int32) -> Int32

  /// Gives the calling thread a table of descriptors of its own, beginning as a copy.
  static func separateDescriptors() {
    let unshare = function("unshare", as: Unshare.self)
    let code = unshare(0x400)  // CLONE_FILES
    precondition(code == 0, "unshare: \(Errno.last)")
  }
}
