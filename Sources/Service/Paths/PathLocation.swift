import Control
import KeychainSelection
import Platform

/// The meaning of a word of the command line by its text, the current directory and the mount points. Nothing in a mount is
/// opened or looked up for it.
package enum PathLocation: Equatable {
  /// A path of the tree, and nothing else; `mount` is the mount point that it lies below, if one was named.
  case tree(TreePath, mount: String?)
  /// A path below the current directory, which lies in a mount. It may be a short name too.
  case relative(TreePath, mount: String)
  /// An absolute path that lies below no mount.
  case outside
  /// Neither: at most a short name.
  case short
}

/// The parts of the system that a path depends on.
package struct PathSurroundings {
  /// The current directory without symbolic links; nil: it was removed, or can't be reached.
  var currentFolder: String?
  /// Whether the tree is mounted on a directory.
  var isMountPoint: (String) -> Bool
  /// Where a symbolic link leads; nil: the path is none.
  var linkTarget: (String) -> String?
}

extension PathSurroundings {
  /// Those of this process.
  static func current(_ places: StoragePaths) -> PathSurroundings {
    let mounted = Set(MountRegistration.all(in: places.runtime).filter(\.isAlive).map(\.path))
    return PathSurroundings(
      currentFolder: Files.currentFolder,
      isMountPoint: { path in
        // Where nothing is mounted, the usual mount point is an empty folder or none: its paths are known all the same.
        mounted.contains(path)
          || path == places.mountPoint && mounted.isEmpty
            && ((try? Files.names(in: path))?.isEmpty ?? true)
      },
      linkTarget: { try? Files.target(ofLink: $0) })
  }
}

extension PathLocation {
  /// No set: its type takes longer to make than this to compare.
  private static func isRoot(_ name: String) -> Bool {
    name == "defaults" || name == "keychain" || name == "views" || name == "templates"
      || name == ".keyhole"
  }

  /// Whether a text is a path from the top of the tree whatever the current directory is.
  static func isFull(_ text: String) -> Bool {
    guard let first = TreePath(text).components.first else { return text.isEmpty }
    return !text.hasPrefix("/") && !text.hasPrefix("./") && isRoot(first)
  }

  init(_ text: String, _ surroundings: PathSurroundings) {
    if Self.isFull(text) {
      self = .tree(TreePath(text), mount: nil)
      return
    }
    let parts = text.unicodeScalars.split(separator: "/").map { String($0) }
    guard !text.hasPrefix("/") else {
      self = Self.absolute(parts, text, surroundings)
      return
    }
    let isDotted = parts.first.map { $0 == "." || $0 == ".." } ?? true
    var walk = PathWalk(surroundings)
    if let folder = surroundings.currentFolder { walk.enter(folder) }
    let start = walk.position
    walk.follow(parts)
    switch (walk.position, start) {
    case (let end?, let start?) where !start.components.isEmpty || isDotted:
      let path = TreePath(components: end.components)
      self = isDotted ? .tree(path, mount: end.mount) : .relative(path, mount: end.mount)
    case (let end?, nil):
      self = .tree(TreePath(components: end.components), mount: end.mount)
    case (nil, _) where isDotted:
      self = .tree(TreePath(text), mount: nil)
    default:
      self = .short
    }
  }

  private static func absolute(
    _ parts: [String], _ text: String, _ surroundings: PathSurroundings
  ) -> PathLocation {
    var walk = PathWalk(surroundings)
    walk.follow(parts)
    if let end = walk.position { return .tree(TreePath(components: end.components), mount: end.mount) }
    guard let first = TreePath(text).components.first else { return .tree(TreePath(""), mount: nil) }
    return isRoot(first) ? .tree(TreePath(text), mount: nil) : .outside
  }
}

/// Follows a path name by name as the kernel does, but never into a mount: below a mount point names are only collected.
private struct PathWalk {
  private let surroundings: PathSurroundings
  private var folder: [String] = []
  private var mounted: (mount: String, components: [String])?
  /// As path_resolution(7) limits them.
  private var links = 40

  init(_ surroundings: PathSurroundings) {
    self.surroundings = surroundings
  }

  /// The names below the mount point; nil: it is not in a mount.
  var position: (mount: String, components: [String])? { mounted }

  /// Enters a folder whose path has no symbolic link.
  mutating func enter(_ path: String) {
    for part in path.unicodeScalars.split(separator: "/") { step(String(part)) { _ in nil } }
  }

  mutating func follow(_ parts: [String]) {
    for part in parts { step(part, surroundings.linkTarget) }
  }

  private mutating func step(_ part: String, _ linkTarget: (String) -> String?) {
    if part == "." { return }
    if part == ".." { return leave() }
    guard mounted == nil else {
      mounted?.components.append(part)
      return
    }
    let path = "/" + (folder + [part]).joined(separator: "/")
    if let target = linkTarget(path), links > 0 {
      links -= 1
      if target.hasPrefix("/") { folder = [] }
      return follow(target.unicodeScalars.split(separator: "/").map { String($0) })
    }
    folder.append(part)
    if surroundings.isMountPoint(path) { mounted = (path, []) }
  }

  private mutating func leave() {
    if mounted?.components.isEmpty == false {
      _ = mounted?.components.popLast()
    } else {
      mounted = nil
      _ = folder.popLast()
    }
  }
}
