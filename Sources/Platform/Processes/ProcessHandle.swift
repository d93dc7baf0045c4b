import CSystem

/// A pidfd: refers to one process, also after its number has been given to another one.
public final class ProcessHandle: Sendable {
  private let descriptor: Descriptor

  /// Takes over the descriptor; nil: it is none.
  private init?(descriptor: Int32) {
    guard descriptor >= 0 else { return nil }
    self.descriptor = Descriptor(owning: descriptor)
  }

  /// pidfd_open(2). nil: there is no such process, or no descriptor is left.
  public convenience init?(process: Int32) {
    guard process > 0 else { return nil }
    self.init(descriptor: linux_pidfd_open(process))
  }

  /// A copy of a pidfd that other code owns. nil: there is no descriptor left, or the number is none of a pidfd that refers to
  /// this process in its pid namespace.
  package convenience init?(duplicating descriptor: Int32, process: Int32) {
    guard let copy = try? Descriptor(duplicating: descriptor), Self.process(of: copy.number) == process else {
      return nil
    }
    self.init(descriptor: copy.release())
  }

  /// `Pid:` in /proc/self/fdinfo/FD; nil: it is no pidfd, or the process is gone.
  private static func process(of descriptor: Int32) -> Int32? {
    let lines = readFile("/proc/self/fdinfo/\(descriptor)").split(separator: "\n")
    let line = lines.first { $0.hasPrefix("Pid:") }
    return line.flatMap { Int32($0.dropFirst(4).filter { !$0.isWhitespace }) }
  }

  /// The process that connected a socket of the Unix domain: SO_PEERPIDFD, before Linux 6.5 the process that has the
  /// number of SO_PEERCRED now. nil: neither can be had.
  public convenience init?(peerOf socket: Int32) {
    self.init(descriptor: linux_peer_descriptor(socket))
  }

  /// Whether the process has not ended. A pidfd is readable when it has.
  public var isAlive: Bool { !Poll.isReady(descriptor.number) }

  /// Waits for the end of the process. False: it has not ended within so many seconds.
  package func waitForEnd(seconds: Int) -> Bool {
    let deadline = ContinuousClock.now + .seconds(Int32(clamping: seconds))
    return (try? Poll.wait(for: [Poll.Entry(descriptor.number)], until: deadline)) == [true]
  }
}

extension ProcessHandle {
  /// The number of the process that connected a socket of the Unix domain (SO_PEERCRED); 0: unknown, or of another pid
  /// namespace.
  public static func numberOfPeer(of socket: Int32) -> Int32 { linux_peer_process(socket) }
}
