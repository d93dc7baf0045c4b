import Platform

/// A symbolic link to a view, as it is on the disk.
struct ViewLink {
  /// Its absolute path.
  let path: String

  enum State: Equatable {
    /// It leads to the view.
    case inPlace
    /// It leads to a view of another name.
    case leadsTo(name: String)
    /// It leads to something else.
    case leadsElsewhere
    /// A file or a folder has its path.
    case isReplaced
    /// Nothing has its path, or it can't be looked at.
    case isGone
  }

  /// `view`: the name of the view that it is of.
  func state(of view: String) -> State {
    guard let status = try? Files.status(path, followingLinks: false) else { return .isGone }
    guard status.isLink else { return .isReplaced }
    guard let target = try? Files.target(ofLink: path) else { return .isGone }
    guard Files.name(of: Files.folder(of: target)) == "views" else { return .leadsElsewhere }
    let name = Files.name(of: target)
    return name == view ? .inPlace : .leadsTo(name: name)
  }

  /// The name of a new link until it has its own.
  var temporary: String { path + ".keyhole-link" }

  /// Removes a link of that name, which a process that was ended has left. - Returns: false: something else has the name.
  static func removeTemporary(_ temporary: String) -> Bool {
    guard Files.hasName(temporary) else { return true }
    guard (try? Files.target(ofLink: temporary)) != nil else { return false }
    return (try? Files.remove(temporary)) != nil
  }

  /// Has it lead from one path to another, in one step. It stays where it does not lead to `old`.
  func change(from old: String, to new: String) throws(Errno) {
    guard Self.removeTemporary(temporary) else { throw .EEXIST }
    try Files.makeLink(temporary, to: new)
    do throws(Errno) {
      try Files.exchange(temporary, with: path)
      // Another program may have put something there meanwhile.
      guard (try? Files.target(ofLink: temporary)) == old else {
        try Files.exchange(temporary, with: path)
        throw .EEXIST
      }
    } catch {
      _ = try? Files.remove(temporary)
      throw error
    }
    _ = try? Files.remove(temporary)
  }
}
