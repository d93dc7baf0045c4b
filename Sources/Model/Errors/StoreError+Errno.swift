public import Platform

extension StoreError {
  /// The error number that the kernel gives for this: the one place where errors become numbers.
  public var errno: Errno {
    switch self {
    case .notFound, .missingPart: .ENOENT
    case .exists: .EEXIST
    case .notEmpty: .ENOTEMPTY
    case .isDirectory: .EISDIR
    case .notDirectory: .ENOTDIR
    case .invalidName, .invalidValue: .EINVAL
    case .nameTooLong: .ENAMETOOLONG
    case .notUnicode, .notRepresentable: .EILSEQ
    case .loop: .ELOOP
    case .tooLarge: .EFBIG
    case .notPermitted: .EPERM
    case .accessDenied: .EACCES
    case .locked: .ENOKEY
    case .rejected: .EKEYREJECTED
    case .revoked: .EKEYREVOKED
    case .timedOut: .ETIMEDOUT
    case .wouldWait: .EAGAIN
    case .readOnly: .EROFS
    case .crossesStores: .EXDEV
    case .noSuchAttribute: .ENODATA
    case .resultTooLarge: .ERANGE
    case .unsupported: .EOPNOTSUPP
    case .noSpace: .ENOSPC
    case .quotaExceeded: .EDQUOT
    case .tooManyOpen: .EMFILE
    case .outOfMemory: .ENOMEM
    // Both mean that the bytes are there and can't be had; EBADMSG and ETIMEDOUT would puzzle the tools.
    case .unreachable, .damaged: .EIO
    case .interrupted: .EINTR
    case .system(let errno, _): errno
    }
  }
}

extension StoreError {
  /// The meaning of a system call's error whichever file it is about; others are `system` with the name of the operation.
  public init(_ error: Errno, _ operation: String) {
    switch error {
    case .EEXIST: self = .exists
    case .ENOSPC: self = .noSpace
    case .EDQUOT: self = .quotaExceeded
    case .EROFS: self = .readOnly(reason: "the file system is mounted read-only")
    case .EMFILE, .ENFILE: self = .tooManyOpen
    case .ENOMEM: self = .outOfMemory
    default: self = .system(error, operation: operation)
    }
  }
}
