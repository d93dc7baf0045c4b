import CSecretLoader
import Model

/// libsecret and GLib, which are loaded with the first keyring: a program that asks for none starts without them.
enum SecretLibrary {
  /// nil: it is loaded.
  private static let problem: String? = {
    guard let text = unsafe csecret_load() else { return nil }
    return unsafe String(cString: text)
  }()

  /// Has to return before anything of `CSecret` is called. dlopen(3).
  ///
  /// - Throws: `unreachable` where the library is not installed.
  static func load() throws(StoreError) {
    guard let problem else { return }
    throw .unreachable(reason: "libsecret can't be loaded (\(problem)): install libsecret-1-0")
  }
}
