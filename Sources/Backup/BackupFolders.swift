/// Where the things are that a backup holds.
public struct BackupFolders: Hashable, Sendable {
  /// Foundation's folder of suites.
  public var settings: String
  /// The folder with `vault.db` and `vault.key`.
  public var vault: String
  /// Times of keys, and the journal of a restore.
  public var state: String

  /// Absolute paths; slashes at their ends are dropped.
  public init(settings: String, vault: String, state: String) {
    self.settings = Self.withoutSlash(settings)
    self.vault = Self.withoutSlash(vault)
    self.state = Self.withoutSlash(state)
  }

  private static func withoutSlash(_ path: String) -> String {
    var path = path[...]
    while path.count > 1, path.last == "/" { path = path.dropLast() }
    return String(path)
  }
}
