import Glibc

/// A Linux error number, as the kernel hands it to the caller.
///
/// The constants keep the names that the manual pages use.
public struct Errno: RawRepresentable, Error, Hashable, Sendable {
  /// The positive number of `errno(3)`.
  public let rawValue: Int32

  /// The error of an errno(3) number, which is not checked.
  public init(rawValue: Int32) {
    self.rawValue = rawValue
  }
}

extension Errno {
  /// Operation not permitted.
  public static let EPERM = Errno(rawValue: Glibc.EPERM)
  /// No such process.
  public static let ESRCH = Errno(rawValue: Glibc.ESRCH)
  /// No such file or directory.
  public static let ENOENT = Errno(rawValue: Glibc.ENOENT)
  /// Interrupted.
  public static let EINTR = Errno(rawValue: Glibc.EINTR)
  /// Input/output error: what a reply that was dropped unanswered says.
  public static let EIO = Errno(rawValue: Glibc.EIO)
  /// No such device or address.
  public static let ENXIO = Errno(rawValue: Glibc.ENXIO)
  /// Argument list too long; of an extended attribute: value too large.
  public static let E2BIG = Errno(rawValue: Glibc.E2BIG)
  /// Bad file descriptor.
  public static let EBADF = Errno(rawValue: Glibc.EBADF)
  /// Try again.
  public static let EAGAIN = Errno(rawValue: Glibc.EAGAIN)
  /// Out of memory, or of memory that may be locked.
  public static let ENOMEM = Errno(rawValue: Glibc.ENOMEM)
  /// Permission denied.
  public static let EACCES = Errno(rawValue: Glibc.EACCES)
  /// Bad address.
  public static let EFAULT = Errno(rawValue: Glibc.EFAULT)
  /// Busy.
  public static let EBUSY = Errno(rawValue: Glibc.EBUSY)
  /// File exists.
  public static let EEXIST = Errno(rawValue: Glibc.EEXIST)
  /// Not on the same file system: `mv` copies instead.
  public static let EXDEV = Errno(rawValue: Glibc.EXDEV)
  /// No such device; of a mapping: not possible for this file.
  public static let ENODEV = Errno(rawValue: Glibc.ENODEV)
  /// Not a directory.
  public static let ENOTDIR = Errno(rawValue: Glibc.ENOTDIR)
  /// Is a directory.
  public static let EISDIR = Errno(rawValue: Glibc.EISDIR)
  /// Invalid argument.
  public static let EINVAL = Errno(rawValue: Glibc.EINVAL)
  /// Too many open files in the system.
  public static let ENFILE = Errno(rawValue: Glibc.ENFILE)
  /// Too many open files.
  public static let EMFILE = Errno(rawValue: Glibc.EMFILE)
  /// No such device control.
  public static let ENOTTY = Errno(rawValue: Glibc.ENOTTY)
  /// File too large.
  public static let EFBIG = Errno(rawValue: Glibc.EFBIG)
  /// No space left.
  public static let ENOSPC = Errno(rawValue: Glibc.ENOSPC)
  /// Can't seek.
  public static let ESPIPE = Errno(rawValue: Glibc.ESPIPE)
  /// Read-only file system.
  public static let EROFS = Errno(rawValue: Glibc.EROFS)
  /// Too many links.
  public static let EMLINK = Errno(rawValue: Glibc.EMLINK)
  /// Broken pipe.
  public static let EPIPE = Errno(rawValue: Glibc.EPIPE)
  /// Result too large; of an extended attribute: the caller's buffer is too small.
  public static let ERANGE = Errno(rawValue: Glibc.ERANGE)
  /// File name too long.
  public static let ENAMETOOLONG = Errno(rawValue: Glibc.ENAMETOOLONG)
  /// Not implemented: most operations are never asked again after it, for the whole mount.
  public static let ENOSYS = Errno(rawValue: Glibc.ENOSYS)
  /// Directory not empty.
  public static let ENOTEMPTY = Errno(rawValue: Glibc.ENOTEMPTY)
  /// Too many symbolic links.
  public static let ELOOP = Errno(rawValue: Glibc.ELOOP)
  /// No data; of an extended attribute: there is none of that name.
  public static let ENODATA = Errno(rawValue: Glibc.ENODATA)
  /// Timer expired.
  public static let ETIME = Errno(rawValue: Glibc.ETIME)
  /// Not a valid text: wrong bytes.
  public static let EILSEQ = Errno(rawValue: Glibc.EILSEQ)
  /// Value too large for its type.
  public static let EOVERFLOW = Errno(rawValue: Glibc.EOVERFLOW)
  /// Bad message: what was stored is damaged.
  public static let EBADMSG = Errno(rawValue: Glibc.EBADMSG)
  /// Operation not supported.
  public static let EOPNOTSUPP = Errno(rawValue: Glibc.EOPNOTSUPP)
  /// Address in use, as of the path of a socket.
  public static let EADDRINUSE = Errno(rawValue: Glibc.EADDRINUSE)
  /// Connection refused: no process listens on the socket.
  public static let ECONNREFUSED = Errno(rawValue: Glibc.ECONNREFUSED)
  /// The other end closed the connection.
  public static let ECONNRESET = Errno(rawValue: Glibc.ECONNRESET)
  /// No child process.
  public static let ECHILD = Errno(rawValue: Glibc.ECHILD)
  /// Not connected: the file system's process is gone.
  public static let ENOTCONN = Errno(rawValue: Glibc.ENOTCONN)
  /// Aborted: the mount was cut off in the middle of the request.
  public static let ECONNABORTED = Errno(rawValue: Glibc.ECONNABORTED)
  /// Timed out.
  public static let ETIMEDOUT = Errno(rawValue: Glibc.ETIMEDOUT)
  /// Stale: what the handle meant is no more.
  public static let ESTALE = Errno(rawValue: Glibc.ESTALE)
  /// Disk quota exceeded.
  public static let EDQUOT = Errno(rawValue: Glibc.EDQUOT)
  /// Cancelled.
  public static let ECANCELED = Errno(rawValue: Glibc.ECANCELED)
  /// The key that is needed is not available.
  public static let ENOKEY = Errno(rawValue: Glibc.ENOKEY)
  /// The key has expired.
  public static let EKEYEXPIRED = Errno(rawValue: Glibc.EKEYEXPIRED)
  /// The key has been revoked.
  public static let EKEYREVOKED = Errno(rawValue: Glibc.EKEYREVOKED)
  /// The key was rejected.
  public static let EKEYREJECTED = Errno(rawValue: Glibc.EKEYREJECTED)
}

extension Errno: CustomStringConvertible {
  /// The text of strerror(3), for messages.
  public var description: String {
    // SAFETY: strerror's text is static for the numbers that Linux has, and per thread for others.
    guard let text = unsafe strerror(rawValue) else { return "error \(rawValue)" }
    return unsafe String(cString: text)
  }
}

extension Errno {
  /// The calling thread's `errno`, to be read right after the call that failed.
  public static var current: Errno { Errno(rawValue: Glibc.errno) }

  /// Runs a call until no signal interrupts it (EINTR). A negative result means that it failed.
  @discardableResult
  package static func retrying<Result: SignedInteger>(_ call: () -> Result) throws(Errno) -> Result {
    while true {
      let result = call()
      if result >= 0 { return result }
      let error = current
      if error != .EINTR { throw error }
    }
  }

  /// Runs a call that returns 0, or an error number in place of setting `errno`, as those of pthreads(7) do.
  package static func checking(_ call: () -> Int32) throws(Errno) {
    let number = call()
    if number != 0 { throw Errno(rawValue: number) }
  }
}
