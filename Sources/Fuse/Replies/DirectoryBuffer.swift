import CFuse

/// Room for as many directory entries as the kernel takes at once.
@safe struct DirectoryBuffer: ~Copyable, @unchecked Sendable {
  private let start: UnsafeMutablePointer<CChar>
  private let capacity: Int
  private var used = 0

  init(capacity: Int) {
    unsafe start = .allocate(capacity: max(capacity, 1))
    self.capacity = capacity
  }

  deinit { unsafe start.deallocate() }

  /// Adds an entry by `fuse_add_direntry`. - Returns: false: there is no room for it.
  mutating func add(
    _ name: Span<UInt8>, _ inode: UInt64, _ kind: FileKind, _ nextOffset: Int, _ pending: borrowing Pending
  ) -> Bool {
    var status = stat()
    status.st_ino = UInt(inode)
    status.st_mode = kind.rawValue
    // SAFETY: the request is alive while it is pending, and only lends its protocol version; so below.
    let request = unsafe pending.request
    return unsafe add(name) { unsafe fuse_add_direntry(request, $0, $1, $2, &status, nextOffset) }
  }

  /// Adds an entry with its node by `fuse_add_direntry_plus`. - Returns: false: there is no room for it.
  mutating func add(
    _ name: Span<UInt8>, _ entry: fuse_entry_param, _ nextOffset: Int, _ pending: borrowing Pending
  ) -> Bool {
    var entry = entry
    let request = unsafe pending.request
    return unsafe add(name) { unsafe fuse_add_direntry_plus(request, $0, $1, $2, &entry, nextOffset) }
  }

  /// libfuse's function takes the place, the room there, and the name, and returns what it needs.
  private mutating func add(
    _ name: Span<UInt8>, by write: (UnsafeMutablePointer<CChar>, Int, UnsafePointer<CChar>) -> Int
  ) -> Bool {
    let room = capacity - used
    // SAFETY: libfuse writes nothing if it needs more than the room.
    let needed = unsafe name.withTerminatedBytes { unsafe write(start + used, room, $0) }
    guard needed <= room else { return false }
    used += needed
    return true
  }

  borrowing func send(_ request: OpaquePointer) -> Int32 {
    unsafe fuse_reply_buf(request, start, used)
  }
}
