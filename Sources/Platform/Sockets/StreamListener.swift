import CSystem

/// A listening stream socket of the Unix domain, closed with its value. It does not wait (SOCK_NONBLOCK).
package struct StreamListener: ~Copyable, Sendable {
  private let descriptor: Descriptor

  /// For `Poll`: readable while a connection waits.
  package var number: Int32 { descriptor.number }

  /// bind(2) and listen(2) with permissions 0600, in place of what has the path. The file stays when it is closed.
  ///
  /// The permissions come from umask(2), which is the process's: no other thread may make files meanwhile.
  /// - Throws: ENAMETOOLONG for a path of more than 107 bytes; ENOENT, EACCES, EMFILE …
  package init(at path: String) throws(Errno) {
    // SAFETY: the string is alive during the call.
    descriptor = Descriptor(owning: try Errno.retrying { unsafe linux_listen(path) })
  }

  /// A socket that the service manager has made and passed on (sd_listen_fds(3)), which may wait; nil: it passed none to this
  /// process. Its variables are taken out of the environment.
  package init?(passedByManager: Void) {
    let process = Environment.remove("LISTEN_PID")
    let count = Environment.remove("LISTEN_FDS")
    _ = Environment.remove("LISTEN_FDNAMES")
    guard process == String(CurrentProcess.number), count == "1" else { return nil }
    // The first one behind the standard streams.
    descriptor = Descriptor(owning: StandardStream.errors.number + 1)
    try? descriptor.setNonBlocking()
  }

  /// accept(2): the next connection, whose bytes come with their sender (SO_PASSCRED).
  ///
  /// - Throws: EAGAIN: none waits; ECONNABORTED; EMFILE, ENFILE: no descriptor is left.
  package func accept() throws(Errno) -> StreamSocket {
    let number = number
    return StreamSocket(Descriptor(owning: try Errno.retrying { linux_accept(number) }))
  }
}
