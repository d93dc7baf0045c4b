import Fuse

/// The file or name that an operation is about: for its error, and for the path in reports.
struct Subject: Sendable {
  /// The file, or the directory that the operation changes.
  let node: NodeID
  /// A name that may not exist; nil: the subject is the node itself.
  var entry: EntryName?
  /// The error for a missing file.
  var onMissing = Missing.fails

  enum Missing {
    /// ENOENT.
    case fails
    /// ESTALE: the kernel has found the node by a name that does not exist any more, and looks it up again.
    case isStale
  }

  static func node(_ node: NodeID) -> Subject { Subject(node: node) }

  /// A node that the kernel has found by its name.
  static func found(_ node: NodeID) -> Subject { Subject(node: node, onMissing: .isStale) }

  static func entry(_ name: [UInt8], in directory: NodeID) -> Subject {
    Subject(node: directory, entry: EntryName(name, in: directory))
  }
}

/// A name in a directory, which may not exist.
struct EntryName: Sendable {
  let bytes: [UInt8]
  let directory: NodeID

  init(_ bytes: [UInt8], in directory: NodeID) {
    self.bytes = bytes
    self.directory = directory
  }
}
