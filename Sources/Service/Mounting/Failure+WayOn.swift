import Control
import KeychainSelection
package import Model
import Platform

extension Failure {
  /// The same for the machine as it is: without a mount there is nothing that `keyhole unlock` could open.
  package var withWayOn: Failure {
    guard kind == .locked, reason.contains(StoreError.locked.message), let folders = UserFolders.current(),
      !MountRegistration.all(in: folders.runtime).contains(where: \.isAlive)
    else { return self }
    var failure = self
    failure.reason = reason.replacing(
      StoreError.locked.message,
      with:
        "the keychain is locked, and no mount has opened it; give its passphrase on a terminal, or `keyhole mount`, and then "
        + "`keyhole unlock`")
    return failure
  }
}
