import Glibc

/// Where a user's things live, by the XDG base directory specification.
public struct UserFolders: Sendable {
  public let home: String
  /// Foundation's folder of suites.
  public let configuration: String
  /// The vault.
  public let data: String
  /// Times of keys, the vault's anchor and device key.
  public let state: String
  /// What lives only while something runs.
  public let runtime: String

  /// The folders as the environment says; nil where there is no home.
  public static func current() -> UserFolders? {
    guard let home = environment("HOME") ?? homeOfUser() else { return nil }
    let state = (environment("XDG_STATE_HOME") ?? home + "/.local/state") + "/keyhole"
    return UserFolders(
      home: home,
      configuration: environment("XDG_CONFIG_HOME") ?? home + "/.config",
      data: (environment("XDG_DATA_HOME") ?? home + "/.local/share") + "/keyhole",
      state: state, runtime: environment("XDG_RUNTIME_DIR").map { $0 + "/keyhole" } ?? state + "/run")
  }

  /// Makes a folder and those that lead to it, for the user alone; one that is there stays as it is.
  public static func make(_ folder: String) {
    var path = ""
    for part in folder.split(separator: "/") {
      path += "/" + part
      unsafe mkdir(path, 0o700)
    }
  }

  /// A variable that is set to an absolute path; the specification has others ignored.
  private static func environment(_ name: String) -> String? {
    guard let value = unsafe getenv(name) else { return nil }
    let path = unsafe String(cString: value)
    return path.hasPrefix("/") ? path : nil
  }

  private static func homeOfUser() -> String? {
    guard let entry = unsafe getpwuid(getuid()), let home = unsafe entry.pointee.pw_dir else { return nil }
    return unsafe String(cString: home)
  }
}
