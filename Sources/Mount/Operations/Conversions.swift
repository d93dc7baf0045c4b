import Fuse
import Glibc
import Model
import Platform
import Store
import Tree

// From the kernel's words to the tree's, and back.

extension Request {
  var caller: Caller { Caller(thread: threadID) }
}

extension Errno {
  init(_ error: StoreError) {
    self = error.errno
  }
}

/// open(2)'s flags, and access(2)'s mask, as far as they matter here.
enum CallFlags {
  /// O_EXCL: the file must be new.
  static func isExclusive(_ flags: Int32) -> Bool { flags & O_EXCL != 0 }

  /// O_APPEND: each write goes to the end.
  static func isAppending(_ flags: Int32) -> Bool { flags & O_APPEND != 0 }

  /// O_NONBLOCK: a caller that does not wait.
  static func isNonBlocking(_ flags: Int32) -> Bool { flags & O_NONBLOCK != 0 }

  /// X_OK: whether the file can be executed, or the directory entered.
  static func asksExecution(_ mask: Int32) -> Bool { mask & X_OK != 0 }

  /// W_OK: whether the file can be written.
  static func asksWriting(_ mask: Int32) -> Bool { mask & W_OK != 0 }
}

extension OpenMode {
  /// open(2)'s flags.
  init(flags: Int32) {
    self = flags & O_ACCMODE == O_WRONLY ? .write : flags & O_ACCMODE == O_RDWR ? [.read, .write] : .read
    if flags & O_TRUNC != 0 { insert(.truncate) }
  }
}

extension Model.Timestamp {
  init(_ time: Fuse.Timestamp) {
    self.init(seconds: Int64(time.seconds), nanoseconds: UInt32(clamping: time.nanoseconds))
  }
}

extension Fuse.Timestamp {
  init(_ time: Model.Timestamp) {
    self.init(seconds: Int(time.seconds), nanoseconds: Int(time.nanoseconds))
  }
}

extension AttributeChanges.TimeChange {
  var time: Model.Timestamp {
    switch self {
    case .now: .now
    case .at(let time): Model.Timestamp(time)
    }
  }
}

extension Statistics {
  init(_ room: DiskRoom) {
    self.init(
      blockSize: UInt(room.blockSize), blocks: UInt(room.blocks), freeBlocks: UInt(room.freeBlocks),
      availableBlocks: UInt(room.availableBlocks))
  }
}

extension NodeStatus.Kind {
  var fileKind: FileKind {
    switch self {
    case .directory: .directory
    case .file: .file
    case .symbolicLink: .symbolicLink
    }
  }

  /// Everything belongs to the mounting user alone, and nothing can be executed.
  var permissions: UInt32 {
    switch self {
    case .directory: 0o700
    case .file: 0o600
    case .symbolicLink: 0o777
    }
  }
}
