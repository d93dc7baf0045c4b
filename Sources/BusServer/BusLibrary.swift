import CServiceLoader

/// libsystemd, which is loaded by the process that serves on a bus: a command that does not starts without it.
enum BusLibrary {
  /// nil: it is loaded.
  private static let problem: String? = {
    guard let text = unsafe cservice_load_bus() else { return nil }
    return unsafe String(cString: text)
  }()

  /// Has to return before anything of `CSystemdBus` is called. dlopen(3).
  ///
  /// - Throws: `BusFailure` where the library is not installed.
  static func load() throws(BusFailure) {
    guard let problem else { return }
    throw BusFailure(reason: "libsystemd can't be loaded (\(problem)): install libsystemd0")
  }
}

/// A bus can't be used; the reason is for a person.
package struct BusFailure: Error {
  /// A clause for a message.
  package let reason: String

  /// - Parameter reason: a clause for a message.
  package init(reason: String) {
    self.reason = reason
  }
}

/// An error of D-Bus, as a reply or in place of one.
package struct BusError: Error, Equatable {
  /// Its name: `org.freedesktop.DBus.Error.NotSupported`.
  package let name: String
  /// The text, for a person.
  package let message: String

  /// - Parameters:
  ///   - name: the name of the error, which has to be a valid one.
  ///   - message: the text, for a person.
  package init(_ name: String, _ message: String) {
    (self.name, self.message) = (name, message)
  }
}
