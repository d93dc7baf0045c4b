import Glibc

/// An error number of the kernel, so that a test can name the one that it expects.
struct Errno: Error, Equatable, Hashable, Sendable {
  let code: Int32

  static var last: Errno { Errno(code: errno) }

  static let again = Errno(code: EAGAIN)
  static let badDescriptor = Errno(code: EBADF)
  static let connectionAborted = Errno(code: ECONNABORTED)
  static let crossDevice = Errno(code: EXDEV)
  static let denied = Errno(code: EACCES)
  static let exists = Errno(code: EEXIST)
  static let fileTooBig = Errno(code: EFBIG)
  static let illegalSequence = Errno(code: EILSEQ)
  static let interrupted = Errno(code: EINTR)
  static let invalid = Errno(code: EINVAL)
  static let io = Errno(code: EIO)
  static let isDirectory = Errno(code: EISDIR)
  static let loop = Errno(code: ELOOP)
  static let missing = Errno(code: ENOENT)
  static let nameTooLong = Errno(code: ENAMETOOLONG)
  static let noData = Errno(code: ENODATA)
  static let noDevice = Errno(code: ENODEV)
  static let noKey = Errno(code: ENOKEY)
  static let noMemory = Errno(code: ENOMEM)
  static let noSpace = Errno(code: ENOSPC)
  static let notConnected = Errno(code: ENOTCONN)
  static let notDirectory = Errno(code: ENOTDIR)
  static let notEmpty = Errno(code: ENOTEMPTY)
  static let notPermitted = Errno(code: EPERM)
  static let notSupported = Errno(code: EOPNOTSUPP)
  static let keyRejected = Errno(code: EKEYREJECTED)
  static let keyRevoked = Errno(code: EKEYREVOKED)
  static let stale = Errno(code: ESTALE)
  static let tooManyOpen = Errno(code: EMFILE)
  static let timedOut = Errno(code: ETIMEDOUT)
  static let range = Errno(code: ERANGE)
  static let readOnly = Errno(code: EROFS)
}

extension Errno: CustomStringConvertible {
  var description: String {
    guard let text = unsafe strerror(code) else { return "errno \(code)" }
    return unsafe String(cString: text)
  }
}

/// The error of `body`; nil if it succeeds.
func failure(_ body: () throws -> Void) -> Errno? {
  do {
    try body()
    return nil
  } catch {
    return error as? Errno ?? Errno(code: -1)
  }
}
