private import Glibc

extension StoreError {
  /// The number of errno(3) that the kernel gives for this: the one place where errors become numbers.
  public var errno: Int32 {
    switch self {
    case .notFound: ENOENT
    case .exists: EEXIST
    case .notEmpty: ENOTEMPTY
    case .isDirectory: EISDIR
    case .notDirectory: ENOTDIR
    case .invalidName, .invalidValue: EINVAL
    case .nameTooLong: ENAMETOOLONG
    case .notUnicode: EILSEQ
    case .tooLarge: EFBIG
    case .notPermitted: EPERM
    case .accessDenied: EACCES
    case .locked: ENOKEY
    case .rejected: EKEYREJECTED
    case .revoked: EKEYREVOKED
    case .timedOut: ETIMEDOUT
    case .wouldWait: EAGAIN
    case .readOnly: EROFS
    case .crossesStores: EXDEV
    case .noSuchAttribute: ENODATA
    case .resultTooLarge: ERANGE
    case .unsupported: EOPNOTSUPP
    case .noSpace: ENOSPC
    case .quotaExceeded: EDQUOT
    case .tooManyOpen: EMFILE
    case .outOfMemory: ENOMEM
    // Both mean that the bytes are there and can't be had; EBADMSG and ETIMEDOUT would puzzle the tools.
    case .unreachable, .damaged: EIO
    case .interrupted: EINTR
    case .system(let errno, _): errno
    }
  }
}
