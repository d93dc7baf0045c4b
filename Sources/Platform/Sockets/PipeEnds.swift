import CSystem

/// Both ends of a pipe(7), which are not passed on to other programs (O_CLOEXEC).
package struct PipeEnds: ~Copyable {
  package let reader: Descriptor
  package let writer: Descriptor

  /// pipe2(2). - Throws: EMFILE, ENFILE.
  package init() throws(Errno) {
    let ends = try Self.numbers()
    reader = Descriptor(owning: ends.reader)
    writer = Descriptor(owning: ends.writer)
  }

  /// pipe2(2): both ends as numbers, which the caller closes. - Throws: EMFILE, ENFILE.
  static func numbers() throws(Errno) -> (reader: Int32, writer: Int32) {
    var ends: [Int32] = [-1, -1]
    // SAFETY: the array has the two elements that are written.
    try Errno.retrying { unsafe linux_pipe(&ends) }
    return (ends[0], ends[1])
  }

  /// The end for reading; the other one is closed.
  package consuming func readerOnly() -> Descriptor { reader }
}
