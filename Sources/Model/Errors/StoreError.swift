public import Platform

/// Why something could not be done. It carries names and reasons, never a value.
///
/// One family for every layer: `errno` in `StoreError+Errno.swift` is the one place that maps it to a
/// number of errno(3). That something is missing is `nil` below `Tree`, and `notFound` from there on.
public enum StoreError: Error, Hashable, Sendable {
  case notFound
  case exists
  case notEmpty
  case isDirectory
  case notDirectory
  /// A name that no file here can have.
  case invalidName(reason: String)
  case nameTooLong
  case notUnicode
  /// Content, an attribute or an option that does not read as what it has to be.
  case invalidValue(reason: String)
  /// More than `limit` bytes.
  case tooLarge(limit: Int)
  case notPermitted(reason: String)
  case accessDenied(reason: String)
  /// The keychain, or the item's class, is locked.
  case locked
  /// A wrong passphrase or password.
  case rejected
  /// Other fingers are enrolled than were when the item was stored (`biometryCurrentSet`).
  case revoked
  /// A question was not answered in time.
  case timedOut
  /// It would have to wait for a person's answer, and the caller does not want to wait.
  case wouldWait
  /// A text that a format can't hold.
  case notRepresentable(reason: String)
  /// A file is made of something that is not there.
  case missingPart(reason: String)
  /// A reference that leads back to where it stands.
  case loop(reason: String)
  case readOnly(reason: String)
  case crossesStores
  case noSuchAttribute
  /// A value does not fit the caller's buffer.
  case resultTooLarge
  case unsupported(reason: String)
  case noSpace
  /// The user's share of the disk is used up (EDQUOT).
  case quotaExceeded
  case tooManyOpen
  case outOfMemory
  /// A store did not answer in time, or is gone.
  case unreachable(reason: String)
  /// The stored content fails its authentication or can't be parsed.
  case damaged(what: String)
  case interrupted
  /// A system call failed with this errno(3); `operation` names it, and what it was about.
  case system(Errno, operation: String)
}

extension StoreError {
  /// A Secret Service without any collection, in which nothing can be stored.
  public static let noCollection = StoreError.notPermitted(
    reason: "the Secret Service has no collection yet; make one with its own program")

  /// There is no room to keep what is to be removed, so it stays.
  public static let noRoomForVersion = StoreError.system(.ENOSPC, operation: "keeping what is removed")

  /// The disk has no room to keep the value that a setting has, so it is not replaced.
  public static let noRoomForReplaced = StoreError.system(.ENOSPC, operation: "keeping what is replaced")

  /// The disk, or the user's share of it, has no room left.
  public var isOutOfSpace: Bool { self == .noSpace || self == .quotaExceeded }
}
