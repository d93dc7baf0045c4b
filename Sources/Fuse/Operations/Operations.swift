import CFuse

/// The table that libfuse calls by. What is missing, the kernel does itself (locks), or is not wanted: `write_buf`
/// would hand over pipes in place of memory that can be zeroed, and `copy_file_range` would bypass open handles.
var kernelOperations: fuse_lowlevel_ops {
  var table = fuse_lowlevel_ops()
  unsafe table.`init` = onInit
  addNames(to: &table)
  addAttributes(to: &table)
  addFiles(to: &table)
  addDirectories(to: &table)
  return table
}

private func onInit(_ host: UnsafeMutableRawPointer?, _ info: UnsafeMutablePointer<fuse_conn_info>?) {
  // SAFETY: libfuse hands over what the session was made with, and its own live structure.
  guard let host = unsafe host, let info = unsafe info else { return }
  unsafe negotiate(&info.pointee)
  unsafe Unmanaged<Host>.fromOpaque(host).takeUnretainedValue().becameReady()
}

private func negotiate(_ info: inout fuse_conn_info) {
  // With O_TRUNC in `open` there is no moment at which a file is empty but not open.
  request(FUSE_CAP_ATOMIC_O_TRUNC, &info)
  request(FUSE_CAP_ASYNC_READ, &info)
  request(FUSE_CAP_PARALLEL_DIROPS, &info)
  // The kernel then asks for attributes along with names while a program reads them (`ls -l`), and for names alone
  // as long as none does (`ls`).
  request(FUSE_CAP_READDIRPLUS, &info)
  request(FUSE_CAP_READDIRPLUS_AUTO, &info)
  // Says that a write or a new owner drops the set-user-id bit, so that the kernel need not ask before.
  request(FUSE_CAP_HANDLE_KILLPRIV, &info)
  // No writeback cache: a write would not arrive before it must. No splice: secrets would pass through pipes. No
  // EXPORT: nodes are not found by number alone. No AUTO_INVAL_DATA: the notifier says what changed, and a
  // modification time that is new would empty the page cache a second time.
  refuse(FUSE_CAP_WRITEBACK_CACHE, &info)
  refuse(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE, &info)
  refuse(FUSE_CAP_EXPORT_SUPPORT | FUSE_CAP_AUTO_INVAL_DATA, &info)
  info.time_gran = 1
  // The kernel sends so many RELEASE requests at a time, by default 12: with many readers, closed files would
  // pile up, and each holds its secret in locked memory. The kernel lowers it to `max_user_bgreq` where that is less.
  info.max_background = mostBackgroundRequests
  info.congestion_threshold = mostBackgroundRequests
}

private func request(_ capability: Int32, _ info: inout fuse_conn_info) {
  info.want |= info.capable & UInt32(capability)
}

private func refuse(_ capability: Int32, _ info: inout fuse_conn_info) {
  info.want &= ~UInt32(capability)
}

/// The file system that a request is for.
func fileSystem(of request: OpaquePointer) -> any FileSystem {
  unsafe Host.of(request).fileSystem
}

extension Host {
  /// The host that a request arrived at.
  static func of(_ request: OpaquePointer) -> Host {
    // SAFETY: the user data is a host, and the session that runs holds it.
    unsafe Unmanaged<Host>.fromOpaque(fuse_req_userdata(request)).takeUnretainedValue()
  }
}

extension Request {
  init(_ request: OpaquePointer) {
    // SAFETY: libfuse keeps the context inside the request, which is alive until it is answered.
    guard let context = unsafe fuse_req_ctx(request) else {
      self.init(userID: 0, groupID: 0, threadID: 0, umask: 0)
      return
    }
    unsafe self.init(
      userID: context.pointee.uid, groupID: context.pointee.gid, threadID: context.pointee.pid,
      umask: context.pointee.umask)
  }
}

extension FileHandle {
  init(_ info: UnsafeMutablePointer<fuse_file_info>) {
    // SAFETY: libfuse's file information is alive during the call that gets it.
    unsafe self.init(rawValue: info.pointee.fh)
  }
}

/// Of one connection: more than there are programs that use a mount at once.
private let mostBackgroundRequests: UInt32 = 1024
