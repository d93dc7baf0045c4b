/// A file or directory that changed outside of the mount.
public protocol ReplayTarget: Hashable, Sendable {
  /// From the top of the mount, without a leading slash.
  var path: String { get }
  /// Whether it is, or was, a directory.
  var isDirectory: Bool { get }
}

/// An external change that is made again through the mount's path, so that inotify(7) watchers see it.
public struct Replay<Target: ReplayTarget>: Hashable, Sendable {
  /// The kind of the change of the file.
  public let kind: ReplayKind
  /// The file.
  public let target: Target

  /// The replay of a change.
  public init(_ kind: ReplayKind, _ target: Target) {
    self.kind = kind
    self.target = target
  }
}

/// The kinds of replays. Ordered as the replays of one file are due.
public enum ReplayKind: Int, Comparable, Sendable {
  /// unlink(2) or rmdir(2).
  case deletion
  /// mknod(2) or mkdir(2).
  case creation
  /// fallocate(2) with FALLOC_FL_KEEP_SIZE, through an open file.
  case modification
  /// chmod(2).
  case attributes

  /// The order in which replays of one file are made.
  public static func < (left: ReplayKind, right: ReplayKind) -> Bool { left.rawValue < right.rawValue }
}
