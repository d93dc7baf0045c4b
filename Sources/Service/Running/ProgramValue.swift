import Model

/// A value that a program is to get, as the command line says.
package struct ProgramValue: Sendable {
  /// Where the program finds it.
  package enum Place: Equatable, Sendable {
    /// In the variable of a name; nil: the names are those of what the path leads to, or stand in the view there.
    case variable(String?)
    /// In a file whose path is in the variable of a name.
    case file(String)
    /// In a descriptor of a number.
    case descriptor(Int32)
  }

  package let place: Place
  /// A word that stands for a path of the tree.
  package let path: String

  /// `NAME=PATH` or `PATH`.
  package init(variable word: String) {
    if let (name, path) = Self.named(word) {
      (place, self.path) = (.variable(name), path)
    } else {
      (place, path) = (.variable(nil), word)
    }
  }

  /// `NAME` of a view, or its path.
  package init(view word: String) {
    (place, path) = (.variable(nil), word.hasPrefix("views/") ? word : "views/" + word)
  }

  /// `NAME=PATH`. - Throws: `UsageError`.
  package init(file word: String) throws {
    guard let (name, path) = Self.named(word) else {
      throw UsageError(message: "--file takes NAME=PATH, where NAME is that of a variable, and not \(word)")
    }
    (place, self.path) = (.file(name), path)
  }

  /// `N=PATH`. - Throws: `UsageError`.
  package init(descriptor word: String) throws {
    let parts = Self.parts(word)
    guard let parts, let number = Int32(parts.0), number >= 0, !parts.1.isEmpty else {
      throw UsageError(message: "--fd takes N=PATH, where N is the number of a descriptor, and not \(word)")
    }
    guard number > 2 else {
      throw UsageError(message: "--fd \(number): descriptors 0 to 2 are the standard streams; take 3 or more")
    }
    (place, path) = (.descriptor(number), parts.1)
  }

  /// Whether a text can be the name of a variable that every shell can use: letters of ASCII, digits and `_`, no digit first.
  package static func isVariableName(_ text: some StringProtocol) -> Bool {
    guard let first = text.utf8.first, !(0x30...0x39).contains(first) else { return false }
    return text.utf8.allSatisfy { byte in
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x5F, 0x61...0x7A: true
      default: false
      }
    }
  }

  /// Looks a path up. - Throws: what `lookUp` throws, with the form of `NAME=PATH` where it has a `=` and nothing was found.
  func requiringName<Result>(_ lookUp: () throws -> Result) throws -> Result {
    do { return try lookUp() } catch var failure as Failure {
      if failure.kind == .notFound, place == .variable(nil), path.contains("=") {
        failure.reason +=
          "; of NAME=PATH, NAME is that of a variable: letters, digits and `_`, and no digit first"
      }
      throw failure
    }
  }

  private static func named(_ word: String) -> (String, String)? {
    guard let parts = parts(word), isVariableName(parts.0), !parts.1.isEmpty else { return nil }
    return parts
  }

  /// By scalars: `=` and a combining mark behind it are one Character.
  private static func parts(_ word: String) -> (String, String)? {
    let scalars = word.unicodeScalars
    guard let sign = scalars.firstIndex(of: "=") else { return nil }
    return (String(scalars[..<sign]), String(scalars[scalars.index(after: sign)...]))
  }
}
