import KeychainSelection
import Platform

extension MountTable.Entry {
  /// Whether no process answers there any more: `Transport endpoint is not connected`.
  ///
  /// Only the mounting user gets that error; others, root too, have no access.
  var isDead: Bool {
    let error = Files.statusError(path, asUser: user ?? User.real, group: group ?? User.realGroup)
    return error == .ENOTCONN || error == .ECONNABORTED
  }
}
