import CFuse
import Glibc
import Platform

extension Connection {
  /// Has libfuse write to the kernel's device through us.
  ///
  /// By itself it tells standard error, past the log, of each answer that the kernel did not take: one from memory that
  /// the kernel can't read (`memfd_secret`: the caller then gets EIO), or one that comes after the mount is gone.
  func quietDevice() {
    guard let session = unsafe session else { return }
    var device = fuse_custom_io()
    unsafe device.read = readDevice
    unsafe device.writev = writeDevice
    // SAFETY: libfuse copies the table, and keeps the descriptor that it has already.
    _ = unsafe fuse_session_custom_io(session, &device, fuse_session_fd(session))
  }
}

private func readDevice(
  _ device: Int32, _ buffer: UnsafeMutableRawPointer?, _ size: Int, _ host: UnsafeMutableRawPointer?
) -> Int {
  unsafe read(device, buffer, size)
}

private func writeDevice(
  _ device: Int32, _ parts: UnsafeMutablePointer<iovec>?, _ count: Int32, _ host: UnsafeMutableRawPointer?
) -> Int {
  let written = unsafe writev(device, parts, count)
  // ENOENT is the one failure that libfuse takes quietly. It means the same as these: the answer was not delivered.
  if written < 0, Errno.current.isUndelivered { errno = ENOENT }
  return written
}

extension Errno {
  fileprivate var isUndelivered: Bool {
    [.EFAULT, .ENODEV, .ENOTCONN, .ECONNABORTED, .EPERM].contains(self)
  }
}
