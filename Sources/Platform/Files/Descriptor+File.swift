import Glibc

// MARK: - The file

extension Descriptor {
  /// fstat(2).
  package var status: FileStatus {
    get throws(Errno) {
      var raw = stat()
      let number = number
      try Errno.retrying { unsafe fstat(number, &raw) }
      return FileStatus(raw)
    }
  }

  /// fsync(2): returns when content and status are on the disk.
  package func synchronize() throws(Errno) {
    let number = number
    try Errno.retrying { fsync(number) }
  }

  /// fdatasync(2): returns when the content can be read after a power cut.
  package func synchronizeData() throws(Errno) {
    let number = number
    try Errno.retrying { fdatasync(number) }
  }

  /// ftruncate(2).
  package func truncate(to size: Int64) throws(Errno) {
    let number = number
    try Errno.retrying { ftruncate(number, Int(clamping: size)) }
  }

  /// posix_fallocate(3): makes sure that the disk has room for the first `size` bytes.
  package func allocate(_ size: Int64) throws(Errno) {
    let number = number
    try Errno.checking { posix_fallocate(number, 0, Int(clamping: size)) }
  }

  /// posix_fadvise(2) POSIX_FADV_DONTNEED: what is read next comes from the disk and not from memory.
  package func dropCache() {
    posix_fadvise(number, 0, 0, POSIX_FADV_DONTNEED)
  }

  /// fcntl(2) F_SETFL O_NONBLOCK, in place of its other flags: calls that would wait throw EAGAIN.
  package func setNonBlocking() throws(Errno) {
    let number = number
    try Errno.retrying { fcntl(number, F_SETFL, O_NONBLOCK) }
  }

  /// lseek(2): where the next bytes are read or written, from the start. - Throws: ESPIPE for a pipe.
  package var position: Int64 {
    get throws(Errno) {
      let number = number
      return Int64(try Errno.retrying { lseek(number, 0, SEEK_CUR) })
    }
  }

  /// lseek(2) from the start.
  package func seek(to offset: Int64) throws(Errno) {
    let number = number
    try Errno.retrying { lseek(number, Int(clamping: offset), SEEK_SET) }
  }

  /// open(2) of the file itself, whatever its name is now, by /proc/self/fd: with other flags, and a position of its own.
  package func opened(_ flags: OpenFlags) throws(Errno) -> Descriptor {
    try Descriptor("/proc/self/fd/\(number)", flags)
  }

  /// fchmod(2).
  package func setPermissions(_ permissions: UInt32) throws(Errno) {
    let number = number
    try Errno.retrying { fchmod(number, permissions) }
  }

  /// fchown(2).
  package func setOwner(_ owner: UInt32, group: UInt32) throws(Errno) {
    let number = number
    try Errno.retrying { fchown(number, owner, group) }
  }

  /// futimens(3): the times of the last access and of the last change.
  package func setModified(_ time: SystemTime) throws(Errno) {
    let (number, moment) = (number, time.timespec)
    // SAFETY: the array has the two elements that the call reads.
    try Errno.retrying { unsafe futimens(number, [moment, moment]) }
  }
}

// MARK: - Leases of fcntl(2)

extension Descriptor {
  // Macros that Glibc's module does not show.
  private static let setSignal: Int32 = 10
  private static let setLease: Int32 = 1024
  private static let getLease: Int32 = 1025

  /// F_SETLEASE with F_WRLCK: from now on an open(2) of the file by any process waits, until the lease is gone or
  /// `/proc/sys/fs/lease-break-time` is over. The signal for that is SIGURG, which is ignored.
  ///
  /// - Returns: false: another descriptor of the file is open.
  /// - Throws: EINVAL on a file system without leases; EACCES for a file of another user.
  package func takeLease() throws(Errno) -> Bool {
    let number = number
    _ = fcntl(number, Self.setSignal, SIGURG)
    do {
      try Errno.retrying { fcntl(number, Self.setLease, Int32(F_WRLCK)) }
      return true
    } catch .EAGAIN {
      return false
    }
  }

  /// F_SETLEASE with F_UNLCK: gives the lease back, so that programs that open the file need not wait.
  package func releaseLease() {
    _ = fcntl(number, Self.setLease, Int32(F_UNLCK))
  }

  /// F_GETLEASE: whether the lease is whole, so that no process has opened the file since, or waits to.
  package var hasLease: Bool { fcntl(number, Self.getLease) == F_WRLCK }
}

// MARK: - Locks of flock(2)

extension Descriptor {
  package enum Lock: Sendable {
    case shared, exclusive
  }

  /// flock(2): waits until the lock is free.
  package func lock(_ lock: Lock = .exclusive) throws(Errno) {
    let number = number
    try Errno.retrying { flock(number, lock.operation) }
  }

  /// flock(2) with LOCK_NB. - Returns: false: another open file holds the lock.
  package func tryLock(_ lock: Lock = .exclusive) throws(Errno) -> Bool {
    let number = number
    do {
      try Errno.retrying { flock(number, lock.operation | LOCK_NB) }
      return true
    } catch .EAGAIN {
      return false
    }
  }

  package func unlock() {
    flock(number, LOCK_UN)
  }
}

extension Descriptor.Lock {
  fileprivate var operation: Int32 {
    switch self {
    case .shared: LOCK_SH
    case .exclusive: LOCK_EX
    }
  }
}
