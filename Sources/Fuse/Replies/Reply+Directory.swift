import CFuse
import Glibc

/// Owed by `readdir`.
public typealias DirectoryReply = Reply<DirectoryAnswer>
/// Owed by `readdirplus`.
public typealias DirectoryPlusReply = Reply<DirectoryPlusAnswer>

/// Marks a ``DirectoryReply``, and holds what was added.
public struct DirectoryAnswer: ~Copyable, Sendable {
  var buffer: DirectoryBuffer
}
/// Marks a ``DirectoryPlusReply``, and holds what was added.
public struct DirectoryPlusAnswer: ~Copyable, Sendable {
  var buffer: DirectoryBuffer
}

extension Reply where Answer == DirectoryAnswer {
  /// Adds a name; false if there is no room for it, which ends this reply.
  ///
  /// `nextOffset` is what the next request starts with, to go on after this entry; never 0. A name is cut at a zero
  /// byte. In libfuse: `fuse_add_direntry`.
  public mutating func add(_ name: Span<UInt8>, inode: UInt64, kind: FileKind, nextOffset: Int) -> Bool {
    var status = stat()
    status.st_ino = UInt(inode)
    status.st_mode = kind.rawValue
    let request = unsafe pending.request
    // SAFETY: the request is alive while self is, and only lends its protocol version; so below.
    return unsafe answer.buffer.add(name) {
      unsafe fuse_add_direntry(request, $0, $1, $2, &status, nextOffset)
    }
  }

  /// Answers with what was added; nothing means the end of the directory.
  @discardableResult
  public consuming func succeed() -> Bool {
    let buffer = answer.buffer
    return unsafe pending.answer { unsafe buffer.send($0) }
  }
}

extension Reply where Answer == DirectoryPlusAnswer {
  /// Adds a name with its node, whose lookups count one more once this is answered; false if there is no room for it.
  ///
  /// Not for `.` and `..`, which are never counted: they go by ``addName(_:inode:kind:nextOffset:)``. In libfuse:
  /// `fuse_add_direntry_plus`.
  public mutating func add(_ name: Span<UInt8>, entry: Entry, nextOffset: Int) -> Bool {
    var parameters = entry.parameters
    let request = unsafe pending.request
    return unsafe answer.buffer.add(name) {
      unsafe fuse_add_direntry_plus(request, $0, $1, $2, &parameters, nextOffset)
    }
  }

  /// Adds a name without its node: the kernel looks it up if it needs it.
  public mutating func addName(_ name: Span<UInt8>, inode: UInt64, kind: FileKind, nextOffset: Int) -> Bool {
    // Node 0 means here that no attributes are given, not that there is no such name.
    var parameters = fuse_entry_param()
    parameters.attr.st_ino = UInt(inode)
    parameters.attr.st_mode = kind.rawValue
    let request = unsafe pending.request
    return unsafe answer.buffer.add(name) {
      unsafe fuse_add_direntry_plus(request, $0, $1, $2, &parameters, nextOffset)
    }
  }

  /// Answers with what was added; nothing means the end of the directory.
  ///
  /// Returns false if the request was gone already: then the kernel has counted none of the nodes.
  @discardableResult
  public consuming func succeed() -> Bool {
    let buffer = answer.buffer
    return unsafe pending.answer { unsafe buffer.send($0) }
  }
}

/// Room for as many entries as the kernel takes at once.
@safe struct DirectoryBuffer: ~Copyable, @unchecked Sendable {
  private let start: UnsafeMutablePointer<CChar>
  private let capacity: Int
  private var used = 0

  init(capacity: Int) {
    unsafe start = .allocate(capacity: max(capacity, 1))
    self.capacity = capacity
  }

  deinit { unsafe start.deallocate() }

  /// Adds by libfuse's function, which takes the place, the room there, and the name, and returns what it needs.
  mutating func add(
    _ name: Span<UInt8>,
    by write: (UnsafeMutablePointer<CChar>, Int, UnsafePointer<CChar>) -> Int
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
