import Platform

extension StoreError {
  /// One line for people: what failed, and what to do where something can be done. It never holds a value.
  public var message: String {
    switch self {
    case .notFound: "there is no such file; `keyhole ls` shows what is there"
    case .exists: "it exists already; remove it or choose another name"
    case .notEmpty: "it is not empty; remove what is in it first"
    case .isDirectory: "it is a folder"
    case .notDirectory: "it is not a folder"
    case .invalidName(let reason): "the name can't be used: \(reason)"
    case .nameTooLong: "the name is longer than 255 bytes; choose a shorter one"
    case .notUnicode: "the name is not UTF-8; choose another one"
    case .invalidValue(let reason): "the value can't be used: \(reason)"
    case .tooLarge(let limit): "it is too large; at most \(limit) bytes are allowed"
    case .notPermitted(let reason): "this is not permitted: \(reason)"
    case .accessDenied(let reason): "access was denied: \(reason)"
    case .locked: "the keychain is locked; unlock it with `keyhole unlock`"
    case .rejected: "the passphrase is wrong"
    case .revoked:
      "other fingers are enrolled now than when the item was stored; remove it and store it again"
    case .timedOut: "the question was not answered in time"
    case .wouldWait: "user approval is required; open it without O_NONBLOCK"
    case .readOnly(let reason): "it is read-only: \(reason)"
    default: systemMessage
    }
  }

  private var systemMessage: String {
    switch self {
    case .crossesStores: "it can't be moved between two stores; copy it and remove the original"
    case .noSuchAttribute: "there is no such attribute; `keyhole attr` lists those that are there"
    case .resultTooLarge: "the value is larger than the room for it"
    case .notRepresentable(let reason): "the format can't hold it: \(reason)"
    case .loop(let reason), .missingPart(let reason): reason
    case .unsupported(let reason): "this is not supported: \(reason)"
    case .noSpace: "there is no room left; free some and try again"
    case .quotaExceeded: "your quota of the disk is used up; remove files of yours and try again"
    case .tooManyOpen:
      "too many files are open, or no locked memory is left for a secret (`ulimit -l` is its limit); close some, or raise "
        + "the limit"
    case .outOfMemory: "there is not enough memory; that of secrets has a limit of its own (`ulimit -l`)"
    case .unreachable(let reason): "the store can't be reached: \(reason)"
    case .damaged(let what): "\(what) is damaged; `keyhole doctor --secrets` says more"
    case .interrupted: "it was interrupted; try again"
    case .noRoomForVersion:
      "there is no room left to keep it for `keyhole undo`, so nothing was removed; free some, or remove it for good with "
        + "`keyhole rm --purge`"
    case .noRoomForReplaced:
      "there is no room left to keep the present value for `keyhole undo`, so nothing was stored; free some, or keep no "
        + "versions of this suite: `user.keyhole.history` = 0"
    case .system(.EIO, let operation):
      "\(operation) failed: the disk reports an error (EIO); `dmesg` says more"
    case .system(.EFBIG, let operation):
      "\(operation) failed: the process may not write files of this size (EFBIG, `ulimit -f`)"
    case .system(let errno, let operation): "\(operation) failed: \(errno)"
    default: "it failed"
    }
  }
}
