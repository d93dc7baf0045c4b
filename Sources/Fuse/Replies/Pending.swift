import CFuse
import Platform

/// A request that is owed one answer: the core of every ``Reply``.
///
/// Not copyable, so there is one owner; dropped unanswered, it answers EIO, since a request without an answer leaves
/// its caller unkillable.
///
/// @unchecked: libfuse locks what the threads share of a request, and there is one owner at a time.
@safe struct Pending: ~Copyable, @unchecked Sendable {
  let request: OpaquePointer
  /// Held by hand and not by a stored reference, because `discard` is for plain members only.
  private let connection: Unmanaged<Connection>
  private var ticket: UInt = 0

  init(_ request: OpaquePointer) {
    unsafe self.request = request
    unsafe connection = Unmanaged.passRetained(Host.of(request).connection)
  }

  deinit {
    // SAFETY: the request is alive: an answer would have discarded self.
    _ = unsafe settle { unsafe fuse_reply_err($0, Errno.EIO.rawValue) }
  }

  /// Sends the answer and says whether the kernel took it.
  ///
  /// False (`-ENOENT` in libfuse) means that the request was gone: its caller was killed, or the mount is.
  consuming func answer(_ send: (OpaquePointer) -> Int32) -> Bool {
    let status = unsafe settle(send)
    discard self
    return status == 0
  }

  /// Sends an answer made of bytes.
  consuming func answer(_ bytes: Span<UInt8>, _ send: (OpaquePointer, UnsafeRawBufferPointer) -> Int32)
    -> Bool
  {
    let status = unsafe bytes.withUnsafeBytes { bytes in unsafe settle { unsafe send($0, bytes) } }
    discard self
    return status == 0
  }
}

extension Pending {
  var isInterrupted: Bool {
    // SAFETY: the request is alive while self is.
    unsafe fuse_req_interrupted(request) != 0
  }

  // SAFETY: self holds a reference to the connection.
  var reading: RequestReading { RequestReading(unsafe connection.takeUnretainedValue()) }

  /// Has `handler` called once if the caller is interrupted before the answer; perhaps before this returns.
  mutating func onInterrupt(_ handler: @escaping @Sendable () -> Void) {
    let ticket = watchInterrupt(handler)
    Interrupts.start(ticket)
  }

  /// The first half of ``onInterrupt(_:)``: an interrupt is noted, and the handler is called by `Interrupts.start`.
  mutating func watchInterrupt(_ handler: @escaping @Sendable () -> Void) -> UInt {
    if ticket != 0 { Interrupts.withdraw(ticket) }
    ticket = Interrupts.add(handler)
    // SAFETY: what libfuse keeps is a number, never a reference, so a late call can't find freed memory.
    unsafe fuse_req_interrupt_func(request, interruptRequest, UnsafeMutableRawPointer(bitPattern: ticket))
    return ticket
  }

  private borrowing func settle(_ send: (OpaquePointer) -> Int32) -> Int32 {
    if ticket != 0 { Interrupts.withdraw(ticket) }
    let status = unsafe send(request)
    unsafe connection.release()
    return status
  }
}

private func interruptRequest(_ request: OpaquePointer?, _ ticket: UnsafeMutableRawPointer?) {
  Interrupts.fire(UInt(bitPattern: ticket))
}
