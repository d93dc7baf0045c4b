import Platform
import PromptHelper
import Prompting
import Store

extension UnlockController {
  /// For a command that has no mount to ask: on its terminal where a person types there, else by a dialog. nil: no person is
  /// to be asked.
  static func ofCommand(_ places: StoragePaths) -> UnlockController? {
    guard isWantedByEnvironment else { return nil }
    let authenticator: any Authenticator =
      SecretInput.isTyped
      ? TypedPassphrase() : HelperAuthenticator(vault: places.vault, state: places.state)
    return UnlockController(authenticator)
  }
}
