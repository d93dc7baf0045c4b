import CSystem
import Glibc
import KeychainSelection

extension MountTable.Entry {
  /// Whether nobody answers there any more: `Transport endpoint is not connected`.
  ///
  /// Only the user who mounted is told; others, root too, may not even ask.
  var isDead: Bool {
    let error = unsafe linux_stat_as(user ?? getuid(), group ?? getgid(), path)
    return error == ENOTCONN || error == ECONNABORTED
  }
}
