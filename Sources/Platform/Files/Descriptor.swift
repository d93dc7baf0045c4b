import CSystem
import Glibc

/// An open file, closed with its value: close(2).
package struct Descriptor: ~Copyable, Sendable {
  package let number: Int32

  /// Takes over a descriptor that the process has.
  package init(owning number: Int32) {
    self.number = number
  }

  /// open(2), again where a signal interrupts it. The descriptor is not passed on to other programs (O_CLOEXEC).
  ///
  /// `permissions` are those of a file that is made, less the bits of umask(2).
  package init(_ path: String, _ flags: OpenFlags, permissions: UInt32 = 0o600) throws(Errno) {
    // SAFETY: a variadic call with its one argument.
    number = try Errno.retrying { unsafe open(path, flags.rawValue | O_CLOEXEC, permissions) }
  }

  /// fcntl(2) F_DUPFD_CLOEXEC: another number for the same open file. A lock of flock(2) lasts as long as either.
  package init(copying other: borrowing Descriptor) throws(Errno) {
    let original = other.number
    number = try Errno.retrying { fcntl(original, F_DUPFD_CLOEXEC, 0) }
  }

  /// fcntl(2) F_DUPFD_CLOEXEC of a descriptor that other code owns, such as 0, standard input.
  package init(duplicating number: Int32) throws(Errno) {
    self.number = try Errno.retrying { fcntl(number, F_DUPFD_CLOEXEC, 3) }
  }

  /// open(2) with O_TMPFILE: a file without a name on the disk of a folder, which is gone when it is closed.
  package init(unnamedIn folder: String) throws(Errno) {
    // A macro that Glibc's module does not show: __O_TMPFILE | O_DIRECTORY.
    let unnamed: Int32 = 0o20000000 | O_DIRECTORY
    // SAFETY: a variadic call with its one argument.
    number = try Errno.retrying { unsafe open(folder, O_RDWR | O_CLOEXEC | unnamed, 0o600) }
  }

  deinit { Glibc.close(number) }

  /// close(2), of which the error says that a file system did not store what was written. It is closed in any case.
  package consuming func close() throws(Errno) {
    let number = number
    discard self
    guard Glibc.close(number) == 0 else { throw Errno.current }
  }

  /// dup2(2): another number stands for this open file, whatever it stood for before.
  package func replace(_ other: Int32) {
    dup2(number, other)
  }

  /// Whether this process was started with a descriptor of this number, and a program that it starts has it too: it is open
  /// and has no O_CLOEXEC.
  package static func isInherited(_ number: Int32) -> Bool {
    let flags = fcntl(number, F_GETFD)
    return flags >= 0 && flags & FD_CLOEXEC == 0
  }

  /// Gives up the descriptor without closing it.
  package consuming func release() -> Int32 {
    let number = number
    discard self
    return number
  }
}

/// How a file is opened: flags of open(2).
package struct OpenFlags: OptionSet, Sendable {
  package let rawValue: Int32
  package init(rawValue: Int32) { self.rawValue = rawValue }

  /// Without the generic one of `SetAlgebra`, which looks for conformances when a program first uses it.
  package init(arrayLiteral flags: OpenFlags...) {
    rawValue = flags.reduce(0) { $0 | $1.rawValue }
  }

  package static let reading = OpenFlags(rawValue: O_RDONLY)
  package static let writing = OpenFlags(rawValue: O_WRONLY)
  package static let readingAndWriting = OpenFlags(rawValue: O_RDWR)
  /// A file that is missing is made.
  package static let create = OpenFlags(rawValue: O_CREAT)
  /// With `create`: EEXIST where the name is taken, by a symbolic link also.
  package static let exclusive = OpenFlags(rawValue: O_EXCL)
  package static let truncate = OpenFlags(rawValue: O_TRUNC)
  /// Each write goes to the file's end.
  package static let append = OpenFlags(rawValue: O_APPEND)
  /// ELOOP where the last part of the path is a symbolic link.
  package static let noFollow = OpenFlags(rawValue: O_NOFOLLOW)
  /// Opening does not wait, as for the other end of a FIFO.
  package static let nonBlocking = OpenFlags(rawValue: O_NONBLOCK)
  /// A terminal does not become the controlling one.
  package static let noControllingTerminal = OpenFlags(rawValue: O_NOCTTY)
  /// ENOTDIR for all but folders.
  package static let folder = OpenFlags(rawValue: O_DIRECTORY)
}

// MARK: - Reading and writing

extension Descriptor {
  /// read(2), or pread(2) with an offset, once: how many bytes came; 0 at the end.
  package func read(into bytes: inout MutableSpan<UInt8>, at offset: Int64? = nil) throws(Errno) -> Int {
    try unsafe bytes.withUnsafeMutableBytes { (buffer) throws(Errno) in
      try unsafe read(into: buffer, at: offset)
    }
  }

  private func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int64?) throws(Errno) -> Int {
    let number = number
    // SAFETY: the buffer says how long it is, and lives during the call.
    return try Errno.retrying {
      if let offset { return unsafe pread(number, buffer.baseAddress, buffer.count, Int(clamping: offset)) }
      return unsafe Glibc.read(number, buffer.baseAddress, buffer.count)
    }
  }

  /// Reads until a buffer is full: how many bytes came, fewer at the file's end only.
  package func fill(_ bytes: inout MutableSpan<UInt8>, at offset: Int64) throws(Errno) -> Int {
    var filled = 0
    while filled < bytes.count {
      let position = offset &+ Int64(filled)
      let part = try unsafe bytes.withUnsafeMutableBytes { (buffer) throws(Errno) in
        // SAFETY: `filled` lies inside the buffer.
        try unsafe read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]), at: position)
      }
      if part == 0 { break }
      filled += part
    }
    return filled
  }

  /// The next bytes, or those from an offset on: fewer than `count` at the file's end only.
  package func read(_ count: Int, at offset: Int64? = nil) throws(Errno) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: max(0, count))
    var filled = 0
    while filled < bytes.count {
      let position = offset.map { $0 &+ Int64(filled) }
      var span = bytes.mutableSpan
      let part = try unsafe span.withUnsafeMutableBytes { (buffer) throws(Errno) in
        // SAFETY: `filled` lies inside the buffer.
        try unsafe read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[filled...]), at: position)
      }
      if part == 0 { break }
      filled += part
    }
    return filled < bytes.count ? Array(bytes.prefix(filled)) : bytes
  }

  /// All from the present position on, but no more than one byte more than `limit`, which tells that there is more.
  ///
  /// `size` bytes are expected, so that most files take one call.
  package func readToEnd(limit: Int, expecting size: Int = 4095) throws(Errno) -> [UInt8] {
    var bytes: [UInt8] = []
    // One byte more than there should be: so the end is found without another call.
    var room = min(max(size, 0), limit) + 1
    while bytes.count <= limit {
      let wanted = min(room, limit + 1 - bytes.count)
      let chunk = try read(wanted)
      if bytes.isEmpty { bytes = chunk } else { bytes += chunk }
      if chunk.count < wanted { break }
      room = 65536
    }
    return bytes
  }

  /// write(2), or pwrite(2) with an offset, until all is written.
  package func write(_ bytes: Span<UInt8>, at offset: Int64? = nil) throws(Errno) {
    let number = number
    var written = 0
    while written < bytes.count {
      let rest = bytes.extracting(written...)
      let part = try unsafe rest.withUnsafeBytes { (buffer) throws(Errno) in
        // SAFETY: the buffer says how long it is, and lives during the call.
        try Errno.retrying {
          if let offset {
            return unsafe pwrite(
              number, buffer.baseAddress, buffer.count, Int(clamping: offset) &+ written)
          }
          return unsafe Glibc.write(number, buffer.baseAddress, buffer.count)
        }
      }
      // Only a file system with a defect takes nothing and reports no error.
      if part == 0 { throw .EIO }
      written += part
    }
  }

  package func write(_ bytes: [UInt8], at offset: Int64? = nil) throws(Errno) {
    try write(bytes.span, at: offset)
  }
}
