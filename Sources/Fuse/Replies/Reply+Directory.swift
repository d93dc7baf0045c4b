import CFuse

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
    answer.buffer.add(name, inode, kind, nextOffset, pending)
  }

  /// Answers with what was added; nothing means the end of the directory.
  @discardableResult
  public consuming func succeed() -> Bool {
    pending.send(answer.buffer)
  }
}

extension Reply where Answer == DirectoryPlusAnswer {
  /// Adds a name with its node, whose lookups count one more once this is answered; false if there is no room for it.
  ///
  /// Not for `.` and `..`, which are never counted: they go by ``addName(_:inode:kind:nextOffset:)``. In libfuse:
  /// `fuse_add_direntry_plus`.
  public mutating func add(_ name: Span<UInt8>, entry: Entry, nextOffset: Int) -> Bool {
    answer.buffer.add(name, entry.parameters, nextOffset, pending)
  }

  /// Adds a name without its node: the kernel looks it up if it needs it.
  public mutating func addName(_ name: Span<UInt8>, inode: UInt64, kind: FileKind, nextOffset: Int) -> Bool {
    // Node 0 means here that no attributes are given, not that there is no such name.
    var parameters = fuse_entry_param()
    parameters.attr.st_ino = UInt(inode)
    parameters.attr.st_mode = kind.rawValue
    return answer.buffer.add(name, parameters, nextOffset, pending)
  }

  /// Answers with what was added; nothing means the end of the directory.
  ///
  /// Returns false if the request was gone already: then the kernel has counted none of the nodes.
  @discardableResult
  public consuming func succeed() -> Bool {
    pending.send(answer.buffer)
  }
}
