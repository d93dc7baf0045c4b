import CSystem

/// Datagrams of the Unix domain.
package enum DatagramSocket {
  /// sendto(2) of a text to the socket at a path, whose first character `@` stands for an abstract name: what sd_notify(3)
  /// sends.
  ///
  /// - Parameters:
  ///   - text: at most as long as the system takes at once.
  ///   - path: of the socket.
  ///   - patience: how long to wait for a receiver whose queue is full, in seconds; nil: without end.
  /// - Throws: ENOENT, ECONNREFUSED, EAGAIN where the patience is over, EINVAL for a path that is empty or has more than 107
  ///   bytes.
  package static func send(_ text: String, to path: String, patience: Int32? = nil) throws(Errno) {
    // SAFETY: the strings are alive during the call.
    try Errno.checking { unsafe linux_notify(path, text, patience ?? 0) }
  }
}
