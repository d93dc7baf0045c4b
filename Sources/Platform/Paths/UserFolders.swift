/// Where a user's things live, by the XDG base directory specification.
public struct UserFolders: Sendable {
  /// The home directory: `$HOME`, or passwd(5)'s.
  public let home: String
  /// Foundation's folder of suites.
  public let configuration: String
  /// The vault.
  public let data: String
  /// Times of keys, the vault's anchor and device key.
  public let state: String
  /// The folder of files that exist only while a process runs.
  public let runtime: String

  /// The folders as the environment says; nil where there is no home.
  ///
  /// The runtime folder is found also without its variable, as in cron(8) and su(1): see `runtimeFolder`.
  public static func current() -> UserFolders? {
    guard let home = Environment.absolutePath("HOME") ?? User.home else { return nil }
    let state = (Environment.absolutePath("XDG_STATE_HOME") ?? home + "/.local/state") + "/keyhole"
    return UserFolders(
      home: home,
      configuration: Environment.absolutePath("XDG_CONFIG_HOME") ?? home + "/.config",
      data: (Environment.absolutePath("XDG_DATA_HOME") ?? home + "/.local/share") + "/keyhole",
      state: state, runtime: runtimeFolder(state))
  }

  /// Where the user's session has its runtime folder, whatever the environment says.
  private static var standardRuntime: String { "/run/user/\(User.effective)" }

  /// XDG_RUNTIME_DIR if it is the user's own; without it the session's, `/run/user/UID`; else a folder below the state.
  ///
  /// Of those, the first in which a mount is noted: a mount that was made without a session, as at boot, is found in one.
  private static func runtimeFolder(_ state: String) -> String {
    let named = Environment.absolutePath("XDG_RUNTIME_DIR").flatMap { isOwn($0) ? $0 : nil }
    let session = isOwn(standardRuntime) ? standardRuntime : nil
    let folders = [named ?? session].compactMap { $0 }.map { $0 + "/keyhole" } + [state + "/run"]
    return folders.first(where: hasMount) ?? folders[0]
  }

  /// Why XDG_RUNTIME_DIR is not used; nil: it is, or is not set.
  package static var runtimeRefusal: String? {
    guard let named = Environment.absolutePath("XDG_RUNTIME_DIR"), !isOwn(named) else { return nil }
    return "XDG_RUNTIME_DIR is \(named), which is no folder of this user's; it is not used"
  }

  private static func isOwn(_ folder: String) -> Bool {
    guard let status = try? Files.status(folder) else { return false }
    return status.isFolder && status.owner == User.effective
  }

  /// Whether a process that is there has noted a mount.
  private static func hasMount(_ folder: String) -> Bool {
    guard RuntimeFolder.problem(folder) == nil else { return false }
    return ((try? Files.names(in: folder)) ?? []).contains { name in
      let parts = name.split(separator: ".", maxSplits: 1)
      guard parts.count == 2, parts[1] == "mount", let process = Int32(parts[0]), process > 0 else {
        return false
      }
      return ProcessNumber.takesSignals(process)
    }
  }

  /// Makes a folder and those that lead to it, for the user alone; one that is there stays as it is.
  public static func make(_ folder: String) {
    var path = ""
    // By scalars: a slash and a combining mark behind it are one Character.
    for part in folder.unicodeScalars.split(separator: "/") {
      path += "/" + String(part)
      try? Files.makeFolder(path)
    }
  }
}
