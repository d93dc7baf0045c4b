import Glibc

/// The streams that a program begins with.
package enum StandardStream: Int32, Sendable {
  case input = 0
  case output = 1
  case errors = 2

  /// The descriptor.
  package var number: Int32 { rawValue }

  /// Opens /dev/null for each stream that the process was started without, so that no other file gets its number. It is opened the wrong
  /// way: to read standard input and to write the others fails with EBADF as before.
  package static func reserveClosed() {
    for number in Int32(0)...2 where fcntl(number, F_GETFD) < 0 {
      // SAFETY: a variadic call without a further argument. The lowest number that is free is this one.
      _ = unsafe open("/dev/null", number == 0 ? O_WRONLY : O_RDONLY)
    }
  }

  /// isatty(3).
  package var isTerminal: Bool { isatty(rawValue) == 1 }
}
