import CGcrypt
import CServiceLoader

/// libgcrypt, which is loaded with the first encrypted session.
enum CryptoLibrary {
  /// nil: it is loaded and ready.
  private static let problem: String? = {
    if let text = unsafe cservice_load_gcrypt() { return unsafe String(cString: text) }
    shim_gcrypt_initialize()
    return nil
  }()

  /// Has to return before anything of `CGcrypt` is called. dlopen(3).
  ///
  /// - Throws: `ProtocolError` where the library is not installed.
  static func load() throws(ProtocolError) {
    guard let problem else { return }
    throw .notSupported("libgcrypt can't be loaded (\(problem)): install libgcrypt20")
  }
}
