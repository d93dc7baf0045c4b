import Control
import KeychainSelection
import Model
import Platform
import SecretMemory
import Store
import Tree
package import Views

/// The symbolic links that lead to views from where programs look for their files.
package struct ViewLinks {
  private let session: TreeSession
  private let places: StoragePaths
  private let view: View
  private let path: TreePath

  /// - Throws: `Failure` where there is no view of the name.
  package init(_ name: String) throws {
    path = TreePath("views/" + name)
    session = try TreeSession(for: path)
    places = try StoragePaths.ofMount()
    let tree = session.tree
    view = try session.attempt(path) { () throws(StoreError) in
      guard let views = tree.views else { throw .notFound }
      return try views.existing(ExactString(name))
    }
  }

  /// Of the view that has a link at a path.
  ///
  /// - Throws: `Failure` where none has.
  package init(ofFile file: String) throws {
    let session = try TreeSession(for: TreePath("views"))
    let absolute = try Self.absolute(file)
    let all = try session.attempt(TreePath("views")) { () throws(StoreError) in
      try session.tree.views?.all() ?? []
    }
    guard let view = all.first(where: { $0.links.contains(absolute) }) else {
      throw Failure(
        file, "no link to a view was made there; `keyhole view NAME --take-in` names the view", .notFound)
    }
    (self.session, self.view) = (session, view)
    places = try StoragePaths.ofMount()
    path = TreePath("views/" + view.name.string)
  }

  /// The name of the view.
  package var name: String { view.name.string }

  /// Puts a link to the view at a path, and remembers it. One that is there already stays.
  ///
  /// - Throws: `Failure` for a path that something else has.
  package func link(_ file: String) throws {
    let absolute = try Self.absolute(file)
    try Self.requireKeepable(absolute)
    // A link that is not remembered would not follow the view.
    try session.requireOpen(for: file, "so the link can't be noted in the view; nothing was changed")
    do throws(Errno) {
      switch ViewLink(path: absolute).state(of: name) {
      case .isGone: try Files.makeLink(absolute, to: target)
      case .inPlace, .leadsTo:
        let present = try Files.target(ofLink: absolute)
        let target = mountTarget ?? Files.folder(of: present) + "/" + name
        guard present != target else { break }
        guard isOurs(absolute, leadingTo: present) else { throw Errno.EEXIST }
        try ViewLink(path: absolute).change(from: present, to: target)
      case .leadsElsewhere, .isReplaced: throw Errno.EEXIST
      }
    } catch .EEXIST {
      throw Failure(
        file,
        "there is a file already, which stays; move it away, or `keyhole view \(name.quotedForShell) --take-in \(file.quotedForShell)` takes over what is in it"
      )
    } catch {
      throw Failure(file, "the link can't be made: \(error)")
    }
    try remember(view.links.filter { $0 != absolute } + [absolute])
  }

  /// Whether a link that leads to another path was made for this view, or leads to one in a mount that there is no more.
  private func isOurs(_ link: String, leadingTo target: String) -> Bool {
    guard !view.links.contains(link) else { return true }
    let mounts = MountRegistration.all(in: places.runtime).map(\.path) + [places.mountPoint]
    guard mounts.contains(Files.folder(of: Files.folder(of: target))) else { return false }
    do { return try session.tree.views?.view(ExactString(Files.name(of: target))) == nil } catch {
      return false
    }
  }

  /// Below the newest mount; without one, below where the next one is made.
  private var target: String { mountTarget ?? places.mountPoint + "/" + path.string }

  /// nil: nothing is mounted.
  private var mountTarget: String? {
    let mount = MountRegistration.all(in: places.runtime).last(where: \.isAlive)
    return mount.map { $0.path + "/" + path.string }
  }

  /// Remembers the links of this view. Other views forget those of their paths: when this one is removed, its link is not theirs.
  private func remember(_ links: [String]) throws {
    try session.attempt(path) { () throws(StoreError) in
      guard let views = session.tree.views else { throw .notFound }
      for other in try views.all() where other.name != view.name {
        let kept = other.links.filter { !links.contains($0) }
        if kept.count < other.links.count { try views.setLinks(kept, of: other) }
      }
      guard links != view.links else { return }
      try views.setLinks(links, of: views.existing(view.name))
    }
  }

  /// Views keep the paths of their links one to a line.
  static func requireKeepable(_ link: String) throws {
    guard !link.utf8.contains(0x0A) else {
      throw Failure(
        link.escapedForTerminal,
        "its path has a line feed, and no such link can be noted; nothing was changed")
    }
  }

  /// An absolute path whose folder has no symbolic link.
  static func absolute(_ file: String) throws -> String {
    do throws(Errno) {
      let folder = try Files.realPath(file.contains("/") ? Files.folder(of: file) : ".")
      return (folder == "/" ? "" : folder) + "/" + Files.name(of: file)
    } catch {
      throw Failure(file, "its folder can't be opened: \(error)")
    }
  }
}

// MARK: - Taking in

extension ViewLinks {
  /// A file that has taken the place of a link, as it was read.
  package final class Replacement: Sendable {
    /// The names of what it changes.
    package let preview: ViewPreview
    fileprivate let file: String
    fileprivate let status: FileStatus
    fileprivate let content: Held
    fileprivate let permit: Permit?

    fileprivate init(
      _ preview: ViewPreview, _ file: String, _ status: FileStatus, _ content: Held, _ permit: Permit?
    ) {
      (self.preview, self.file, self.status, self.permit) = (preview, file, status, permit)
      self.content = content
    }
  }

  /// Reads a file, and compares it with the view, under each item's rules for writing. Nothing is stored.
  ///
  /// - Throws: `Failure` for a file that git tracks, that belongs to another user, that has a second name, or that the format does
  ///   not parse.
  package func read(_ file: String) throws -> Replacement {
    let absolute = try Self.absolute(file)
    try GitIndex.requireUntracked(absolute)
    let (status, content) = try Self.content(of: absolute, file)
    let tree = session.tree
    let node = try session.node(at: path)
    let (preview, permit) = try session.attempt(path) { () throws(StoreError) in
      let permit = try tree.permission(toOpen: node, [.read, .write], by: session.caller)?.fetch()
      guard let views = tree.views else { throw .notFound }
      return (try views.preview(content.copy(), as: view.name, permit), permit)
    }
    return Replacement(preview, absolute, status, content, permit)
  }

  /// Stores what a file changes, and puts the link in its place.
  package func take(_ replacement: Replacement) throws {
    let (tree, text) = (session.tree, replacement.content)
    let temporary = ViewLink(path: replacement.file).temporary
    // A run that was ended may have left one.
    guard ViewLink.removeTemporary(temporary) else {
      throw Failure(temporary, "this file is in the way; look at it, and move it away. Nothing was taken in")
    }
    try session.attempt(path) { () throws(StoreError) in
      guard let views = tree.views else { throw .notFound }
      try views.store(text.copy(), as: view.name, since: nil, replacement.permit)
    }
    do throws(Errno) {
      guard let now = try Files.status(replacement.file, followingLinks: false),
        now.id == replacement.status.id, now.modified == replacement.status.modified,
        now.size == replacement.status.size, now.links == 1
      else {
        throw Errno.EBUSY
      }
      try Files.makeLink(temporary, to: target)
      do throws(Errno) { try Files.rename(temporary, to: replacement.file) } catch {
        _ = ViewLink.removeTemporary(temporary)
        throw error
      }
    } catch {
      throw Failure(
        replacement.file,
        "its values are stored, and the link could not be put in its place (\(error)): the file is still there, with the secrets in it"
      )
    }
    try remember(view.links.filter { $0 != replacement.file } + [replacement.file])
  }

  private static func content(of path: String, _ shown: String) throws -> (FileStatus, Held) {
    do throws(Errno) {
      // A FIFO or a device must not hold this up.
      let file = try Descriptor(path, [.reading, .noFollow, .nonBlocking])
      let status = try file.status
      guard status.isRegular, status.owner == User.effective else { throw .EPERM }
      guard status.links == 1 else { throw .EEXIST }
      guard status.size <= FileTree.secretLimit else { throw .EFBIG }
      guard var bytes = try? SecretBytes(count: Int(status.size)) else { throw .ENOMEM }
      var count = 0
      while count < bytes.count {
        let read = try readPart(file, &bytes, from: count)
        if read == 0 { throw .EBUSY }
        count += read
      }
      return (status, Held(bytes))
    } catch .ELOOP {
      throw Failure(shown, "it is a symbolic link; nothing has replaced it")
    } catch .EPERM {
      throw Failure(shown, "it is no regular file of your own")
    } catch .EEXIST {
      throw Failure(
        shown, "it has other names (hard links), which would keep the secrets; nothing was taken in")
    } catch {
      throw Failure(shown, "it can't be read: \(error)")
    }
  }

  private static func readPart(
    _ file: borrowing Descriptor, _ bytes: inout SecretBytes, from start: Int
  ) throws(Errno) -> Int {
    var span = bytes.mutableSpan
    var rest = span._mutatingExtracting(start...)
    return try file.read(into: &rest)
  }
}

/// A secret that closures share.
fileprivate final class Held: Sendable {
  private let bytes: SecretBytes

  init(_ bytes: consuming SecretBytes) { self.bytes = bytes }

  func copy() throws(StoreError) -> SecretBytes {
    do { return try SecretBytes(copying: bytes) } catch { throw .outOfMemory }
  }
}
