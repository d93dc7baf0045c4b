import Platform

/// The command `keyhole` as an administrator has installed it, for programs that are not Keyhole.
package enum InstalledCommand {
  private static let paths = ["/usr/bin/keyhole", "/usr/local/bin/keyhole"]

  /// The executable, which only root can change; nil: there is none.
  ///
  /// PATH does not count: whatever sets it for a program could name one that keeps the passphrase.
  package static var path: String? { paths.first(where: isRoots) }

  private static func isRoots(_ path: String) -> Bool {
    guard let status = try? Files.status(path), status.isRegular, status.owner == 0,
      status.permissions & 0o022 == 0
    else { return false }
    return Files.allows(.execute, path)
  }
}
