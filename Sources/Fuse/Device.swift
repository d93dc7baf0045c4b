import CFuse
import Glibc

extension Connection {
  /// Has libfuse read and write the kernel's device through us.
  ///
  /// Its own way has two traps. When the kernel can't read an answer's memory (EFAULT: `memfd_secret`), libfuse forgets
  /// the request, and its caller hangs for ever. And a failed write is told to standard error, past the log.
  func guardDevice() {
    guard let session = unsafe session else { return }
    var device = fuse_custom_io()
    unsafe device.read = readDevice
    unsafe device.writev = writeDevice
    // SAFETY: libfuse copies the table, and keeps the descriptor that it has already.
    _ = unsafe fuse_session_custom_io(session, &device, fuse_session_fd(session))
  }
}

private func readDevice(
  _ device: Int32, _ buffer: UnsafeMutableRawPointer?, _ size: Int, _ connection: UnsafeMutableRawPointer?
) -> Int {
  // A cancellation point, as libfuse's own read: so the loop ends its threads.
  unsafe read(device, buffer, size)
}

private func writeDevice(
  _ device: Int32, _ parts: UnsafeMutablePointer<iovec>?, _ count: Int32,
  _ connection: UnsafeMutableRawPointer?
) -> Int {
  let written = unsafe writev(device, parts, count)
  guard written < 0 else { return written }
  let errno = Errno.current
  let isAnswered = unsafe errno == .EFAULT && answerUnreadable(device, parts)
  // ENOENT is the one failure that libfuse takes quietly; it means what is true here: nobody got the answer.
  Glibc.errno = isAnswered || errno.meansDisconnected ? ENOENT : errno.rawValue
  return -1
}

/// Answers EIO in place of an answer that the kernel could not read.
private func answerUnreadable(_ device: Int32, _ parts: UnsafeMutablePointer<iovec>?) -> Bool {
  // SAFETY: the first part is always libfuse's `fuse_out_header`: length, error, and the request's number.
  guard let header = unsafe parts?.pointee.iov_base else { return false }
  var answer = unsafe header.loadUnaligned(as: OutHeader.self)
  guard answer.unique != 0 else { return false }
  answer.length = UInt32(MemoryLayout<OutHeader>.size)
  answer.error = -EIO
  return unsafe write(device, &answer, MemoryLayout<OutHeader>.size) > 0
}

/// `fuse_out_header` of the kernel's protocol.
private struct OutHeader: BitwiseCopyable {
  var length: UInt32
  var error: Int32
  /// 0 for a notification, which nobody waits for.
  var unique: UInt64
}

extension Errno {
  /// True once the mount is gone: no caller waits any more.
  fileprivate var meansDisconnected: Bool {
    self == .ENODEV || self == .ENOTCONN || self == .EPERM || self == .EBADF
  }
}
