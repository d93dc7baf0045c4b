import CSystem
import Glibc

/// A connected stream socket of the Unix domain (unix(7)). Any thread may use it.
///
/// It is closed with its last reference and not passed on to other programs (SOCK_CLOEXEC). Nothing raises SIGPIPE.
package final class StreamSocket: Sendable {
  private let descriptor: Descriptor

  /// For `Poll` and for other libraries; it is open as long as this object is referenced.
  package var number: Int32 { descriptor.number }

  /// Takes over a socket that is connected.
  package init(_ descriptor: consuming Descriptor) {
    self.descriptor = descriptor
  }

  /// connect(2) to a listening socket.
  ///
  /// - Throws: EAGAIN where that takes longer than some seconds; ENOENT and ECONNREFUSED where no process listens;
  ///   ENAMETOOLONG for a path of more than 107 bytes; EACCES, EMFILE …
  package convenience init(connectingTo path: String, within seconds: Int) throws(Errno) {
    self.init(Descriptor(owning: try Self.connect(path, Int32(clamping: seconds))))
  }

  private static func connect(_ path: String, _ seconds: Int32) throws(Errno) -> Int32 {
    let deadline = ContinuousClock.now + .seconds(seconds)
    while true {
      // SAFETY: the string is alive during the call.
      let number = unsafe linux_connect(path, seconds)
      if number >= 0 { return number }
      let error = Errno.current
      // A connection that a signal interrupts is not made, and has to be begun again.
      guard error == .EINTR else { throw error }
      if deadline <= .now { throw .EAGAIN }
    }
  }

  /// socketpair(2): two sockets that are connected to each other.
  package static func pair() throws(Errno) -> (StreamSocket, StreamSocket) {
    var ends: [Int32] = [-1, -1]
    // SAFETY: the array has the two elements that are written.
    try Errno.retrying { unsafe linux_socket_pair(&ends) }
    return (StreamSocket(Descriptor(owning: ends[0])), StreamSocket(Descriptor(owning: ends[1])))
  }

  /// shutdown(2) of both directions: ends the connection, also for a thread that waits for it.
  package func shutDown() {
    shutdown(number, Int32(SHUT_RDWR))
  }

  /// shutdown(2) of one direction: the other side reads the end of the bytes, and may send on.
  package func endSending() {
    shutdown(number, Int32(SHUT_WR))
  }

  /// The process that made or accepted the connection, as it was at that moment (SO_PEERCRED).
  package var peer: Credentials {
    Credentials(process: linux_peer_process(number), user: linux_peer(number))
  }

  /// getpeername(2): the abstract address that the other end is bound to, without the NUL before it. Any process can bind any
  /// address that is free.
  ///
  /// - Returns: nil where it has none, or a path.
  package var abstractAddressOfPeer: [UInt8]? {
    var address = [UInt8](repeating: 0, count: 108)
    // SAFETY: the function gets the size of the array.
    let count = unsafe linux_abstract_peer(number, &address, UInt(address.count))
    return count < 0 ? nil : Array(address.prefix(Int(count)))
  }

  /// A process and its user, as the kernel reports them.
  package struct Credentials: Hashable, Sendable {
    /// 0: unknown, or of another pid namespace.
    package let process: Int32
    /// nil: unknown.
    package let user: UInt32?

    init(process: Int32, user: UInt32) {
      (self.process, self.user) = (process, user == .max ? nil : user)
    }
  }
}

// MARK: - Sending

extension StreamSocket {
  /// send(2) until all is sent. It waits while the other side's buffer is full.
  ///
  /// - Throws: ETIMEDOUT where that is not done by then; EPIPE and ECONNRESET where the other side is gone.
  package func send(_ bytes: Span<UInt8>, until deadline: ContinuousClock.Instant) throws(Errno) {
    var sent = 0
    while sent < bytes.count {
      do throws(Errno) {
        sent += try sendSome(bytes.extracting(sent...))
      } catch .EAGAIN {
        guard try wait(for: .output, until: deadline) else { throw .ETIMEDOUT }
      }
    }
  }

  /// send(2) once, without waiting. - Throws: EAGAIN.
  private func sendSome(_ bytes: Span<UInt8>) throws(Errno) -> Int {
    let number = number
    let count = try unsafe bytes.withUnsafeBytes { (buffer) throws(Errno) in
      // SAFETY: the buffer says how long it is, and lives during the call.
      try Errno.retrying {
        unsafe Glibc.send(
          number, buffer.baseAddress, buffer.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
      }
    }
    // Only a socket with a defect takes nothing and reports no error.
    if count == 0 { throw .EIO }
    return count
  }
}

// MARK: - Receiving

extension StreamSocket {
  /// False: it is not ready by then, or the moment had passed already. nil: there is no limit.
  package func wait(
    for events: Poll.Events = .input, until deadline: ContinuousClock.Instant?
  ) throws(Errno) -> Bool {
    try Poll.wait(for: number, events, until: deadline)
  }

  /// recvmsg(2) without waiting, into what is behind `start`. Bytes of two senders never come together.
  ///
  /// The sender is the process that sent the bytes (SCM_CREDENTIALS), which is known on connections of a
  /// `StreamListener` only.
  ///
  /// - Returns: how many bytes came, 0 where the other side has closed the connection; nil: nothing is there.
  package func receive(
    into bytes: inout MutableSpan<UInt8>, from start: Int = 0
  ) throws(Errno) -> (count: Int, sender: Credentials)? {
    let number = number
    var sender = linux_sender()
    do throws(Errno) {
      let count = try unsafe bytes.withUnsafeMutableBytes { (buffer) throws(Errno) in
        // SAFETY: the rest of the buffer says how long it is, and lives during the call.
        let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[start...])
        return try Errno.retrying {
          unsafe linux_receive_from(number, rest.baseAddress, rest.count, &sender)
        }
      }
      return (count, Credentials(process: sender.process, user: sender.user))
    } catch .EAGAIN {
      return nil
    }
  }

  /// The same, with a descriptor that comes with the bytes (SCM_RIGHTS); of more than one the others are closed.
  package func receiveWithDescriptor(
    into bytes: inout MutableSpan<UInt8>
  ) throws(Errno) -> (count: Int, descriptor: PassedDescriptor?)? {
    let number = number
    var passed: Int32 = -1
    do throws(Errno) {
      let count = try unsafe bytes.withUnsafeMutableBytes { (buffer) throws(Errno) in
        // SAFETY: the buffer says how long it is, and lives during the call.
        try Errno.retrying { unsafe linux_receive(number, buffer.baseAddress, buffer.count, &passed) }
      }
      return (count, passed < 0 ? nil : PassedDescriptor(Descriptor(owning: passed)))
    } catch .EAGAIN {
      return nil
    }
  }
}

/// A descriptor that came over a socket, closed with its last reference.
package final class PassedDescriptor: Sendable {
  private let descriptor: Descriptor

  package var number: Int32 { descriptor.number }

  init(_ descriptor: consuming Descriptor) {
    self.descriptor = descriptor
  }
}
