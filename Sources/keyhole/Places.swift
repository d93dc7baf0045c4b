import Glibc

/// Where things live, by the XDG base directory specification (`Places` in the contract's section 10).
struct Places {
  let home: String
  /// Foundation's folder of suites.
  let configuration: String
  /// The vault.
  let vault: String
  /// Times of keys, the vault's anchor and device key.
  let state: String
  /// What lives only while something runs.
  let runtime: String

  /// - Throws: `Failure` where there is no home.
  static func current() throws -> Places {
    guard let home = environment("HOME") ?? homeOfUser() else {
      throw Failure(nil, "there is no home folder; set HOME")
    }
    let state = (environment("XDG_STATE_HOME") ?? home + "/.local/state") + "/keyhole"
    return Places(
      home: home,
      configuration: environment("XDG_CONFIG_HOME") ?? home + "/.config",
      vault: (environment("XDG_DATA_HOME") ?? home + "/.local/share") + "/keyhole",
      state: state, runtime: environment("XDG_RUNTIME_DIR").map { $0 + "/keyhole" } ?? state + "/run")
  }

  var mountPoint: String { home + "/Keyhole" }

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
