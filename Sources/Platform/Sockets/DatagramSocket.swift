import CSystem

/// Datagrams of the Unix domain.
package enum DatagramSocket {
  /// sendto(2) of a text to the socket at a path, whose first character `@` stands for an abstract name: what sd_notify(3)
  /// sends. - Throws: ENOENT, ECONNREFUSED, EAGAIN where the receiver did not read for a second, EINVAL for a path that is empty or has more than 107 bytes.
  package static func send(_ text: String, to path: String) throws(Errno) {
    // SAFETY: the strings are alive during the call.
    try Errno.checking { unsafe linux_notify(path, text) }
  }
}
