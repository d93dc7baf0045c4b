import CSystem
import KeychainSelection
import Platform

extension MountTable.Entry {
  /// Whether no process answers there any more: `Transport endpoint is not connected`.
  ///
  /// Only the mounting user gets that error; others, root too, have no access.
  var isDead: Bool {
    let error = unsafe linux_stat_as(user ?? User.real, group ?? User.realGroup, path)
    return [.ENOTCONN, .ECONNABORTED].contains(Errno(rawValue: error))
  }
}
