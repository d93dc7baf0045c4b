import Glibc

/// The streams that a program begins with.
package enum StandardStream: Int32, Sendable {
  case input = 0
  case output = 1
  case errors = 2

  /// The descriptor.
  package var number: Int32 { rawValue }

  /// isatty(3).
  package var isTerminal: Bool { isatty(rawValue) == 1 }
}
