import KeychainSelection
import Model
import Platform
import SecretMemory
import Store
import Tree
import Views

/// Writes an adopted file again, from what the keychain has now, and removes what was made for it.
package struct AdoptionUndo {
  private var entry: AdoptionJournal.Entry
  /// Where the link leads.
  private let former: String
  /// The service in which the items were made.
  private let home: String
  private let session: TreeSession
  private let places: StoragePaths
  /// Whether the file has its name: of a run that was ended, of this or of the adoption.
  private let hasFile: Bool
  /// Whether neither the link nor anything else has the file's name.
  private let isMissing: Bool

  /// - Throws: `Failure` for a file that was not adopted, or where something else has the place of its link.
  package init(_ path: String) throws {
    let path = try ViewLinks.absolute(path)
    places = try StoragePaths.ofMount()
    let entries = try AdoptionJournal.entries(in: places.state, following: path)
    guard let entry = entries.last(where: { $0.file == path }), entry.stage != .undone else {
      throw Self.notAdopted(path, entries)
    }
    let isBegun = entry.stage == .making || entry.stage == .undoing
    hasFile = try isBegun && Files.status(path, followingLinks: false)?.isRegular == true
    // An adoption that was interrupted may not have stored the values.
    isMissing = try entry.stage != .making && Files.status(path, followingLinks: false) == nil
    session = try TreeSession(for: TreePath(entry.target))
    home = AdoptedTarget(path: entry.target).service
    var present = entry
    if !hasFile, !isMissing, (try? Files.target(ofLink: path)) == nil {
      throw Failure(
        path,
        "it is no longer the link to \(entry.link); nothing was changed. Where nothing has the name, the file is written there"
      )
    }
    try session.requireOpen(
      for: path, "so its values can't be read" + (isMissing ? "" : "; the link is still there"))
    // The view or the item may have another name since, to which the link of a view follows.
    let ending = TreePath(entry.target).isView ? "" : "/value"
    if let target = try AdoptedTarget.path(of: entry, session), target != entry.target,
      let mount = AdoptedTarget.mount(of: entry.link, to: entry.target + ending)
    {
      present = entry.moved(to: target, link: mount + target + ending)
    }
    let isThere = try session.existingNode(at: TreePath(present.target)) != nil
    if hasFile, entry.stage == .undoing, isThere, try !Self.isWritten(path, from: present.target, session) {
      throw Failure(
        path,
        "it has not the same in it as \(present.target), and the link is gone; nothing was changed. Give the file another name, and then the "
          + "same command again writes it")
    }
    if !hasFile, !entry.made.isEmpty, !isThere {
      throw Failure(
        path,
        "\(present.target) was removed: `keyhole undo \(present.target.quotedForShell)` brings it back, and then the same command again",
        .notFound)
    }
    let link = try? Files.target(ofLink: path)
    guard
      try hasFile || isMissing || link == entry.link || link == present.link
        || Self.isDangling(link, entry, session)
    else {
      throw Failure(
        path,
        "it is no longer the link to \(present.link); nothing was changed. Where nothing has the name, the file is written there"
      )
    }
    former = link ?? entry.link
    if hasFile, entry.stage == .making,
      !entries.contains(where: { $0.file != path && $0.target == entry.target }),
      try AdoptedTarget(path: present.target).isMade(for: AdoptedContent(Self.content(path)), session)
    {
      present.made = try AdoptedTarget(path: present.target).made(session)
    }
    self.entry = present
  }

  /// Whether a link leads to a path of the tree where nothing is: the item has been renamed more than once.
  private static func isDangling(
    _ link: String?, _ entry: AdoptionJournal.Entry, _ session: TreeSession
  ) throws -> Bool {
    guard let path = link.flatMap({ AdoptedTarget.path(of: $0, entry) }) else { return false }
    return try session.existingNode(at: TreePath(path)) == nil
  }

  /// A copy of a folder has a copy of the link.
  private static func notAdopted(_ path: String, _ entries: [AdoptionJournal.Entry]) -> Failure {
    guard let link = try? Files.target(ofLink: path),
      let other = entries.last(where: { $0.link == link && $0.stage == .adopted })
    else { return Failure(path, "it was not adopted; nothing was changed", .notFound) }
    let free = ["", "-2", "-3", "-4", "-5"].map { "\(path).plain\($0)" }.first { !Files.hasName($0) }
    let (file, copy) = (
      path.quotedForShell, (free ?? "\(path).plain-\(CurrentProcess.number)").quotedForShell
    )
    return Failure(
      path,
      "it is a copy of the link of \(other.file), which was adopted; nothing was changed. `cp \(file) \(copy) && mv \(copy) \(file)` makes "
        + "it a file of its own, with the secrets in it", .notFound)
  }

  /// Whether a file is what an undo that was ended has written, and no other one that has taken the link's place since.
  private static func isWritten(_ path: String, from target: String, _ session: TreeSession) throws -> Bool {
    let target = TreePath(target)
    return try content(path) == session.secret(at: target.isView ? target : target.appending("value"))
  }

  private static func content(_ path: String) throws -> SecretBytes {
    do throws(Errno) { return try Adoption.read(path) } catch {
      throw Failure(path, "it can't be read: \(error); nothing was changed")
    }
  }

  /// The path in the tree of the view or the item.
  package var target: String { entry.target }

  /// Whether a view or an item was made for the file: an adoption that was interrupted may have come to none.
  package var hasTarget: Bool { entry.stage != .making || !hasFile || !entry.made.isEmpty }

  /// Whether secrets are written to the disk; no: the file is there already.
  package var writesFile: Bool { !hasFile }

  /// Puts a file with the present values in the place of the link, or where nothing has its name, and removes the view, and the items that were made for it, unless they were
  /// changed since or something else uses them.
  ///
  /// - Returns: why they stay, nil: they are removed; and the old file that the adoption has not overwritten, where it has something else
  ///   in it.
  /// - Throws: `Failure`; what had the name then still has it.
  package mutating func run() throws -> (obstacle: String?, remains: String?) {
    var journal = try AdoptionJournal(in: places.state)
    let hasTarget = hasTarget
    let remains = entry.file + AdoptionJournal.remainsEnding
    if !hasFile {
      let path = TreePath(entry.target)
      let bytes = try session.secret(at: path.isView ? path : path.appending("value"))
      let former = entry
      entry.stage = .undoing
      try journal.add(entry)
      do { try write(bytes) } catch {
        // Another file that gets the name is not taken for this one.
        try? journal.add(former)
        throw error
      }
    } else if (try? Files.target(ofLink: remains)) != nil {
      _ = try? Files.remove(remains)
    }
    let target = AdoptedTarget(path: entry.target)
    let obstacle = hasTarget ? try target.obstacle(entry.made, for: entry.file, in: home, session) : nil
    if obstacle != nil { try forgetLink() } else if hasTarget { try target.remove(session, entry.made) }
    if isCopy(remains) { _ = try? Files.remove(remains) }
    // An entry stays as long as the old file does, so that `keyhole doctor` names that.
    if Files.hasName(remains) {
      entry.stage = .undone
      try journal.add(entry)
    } else {
      try journal.remove(entry.file)
    }
    return (obstacle, Files.hasName(remains) ? remains : nil)
  }

  /// Whether a file has the same in it as the one that has its name back.
  private func isCopy(_ path: String) -> Bool {
    guard (try? Files.status(path, followingLinks: false))??.isRegular == true,
      let old = try? PlainFile(path), let copy = try? AdoptedContent(old.content()),
      let new = try? Adoption.read(entry.file)
    else { return false }
    return copy.isEqual(to: new)
  }

  private func write(_ bytes: borrowing SecretBytes) throws {
    let temporary = entry.file + AdoptionJournal.undoEnding
    do throws(Errno) {
      try Files.remove(temporary)
      let file = try Descriptor(temporary, [.writing, .create, .exclusive, .noFollow])
      try file.write(bytes.span)
      try file.setPermissions(entry.permissions)
      try file.synchronize()
      if isMissing {
        try Files.renameWithoutReplacing(temporary, to: entry.file)
      } else {
        guard try Files.target(ofLink: entry.file) == former else { throw .EBUSY }
        try Files.rename(temporary, to: entry.file)
      }
      try Files.synchronizeFolder(Files.folder(of: entry.file))
    } catch {
      _ = try? Files.remove(temporary)
      throw Failure(entry.file, "the file can't be written: \(error)")
    }
  }

  private func forgetLink() throws {
    guard TreePath(entry.target).isView else { return }
    try session.attempt(TreePath(entry.target)) { () throws(StoreError) in
      guard let views = session.tree.views else { return }
      let view = try views.existing(ExactString(Files.name(of: entry.target)))
      try views.setLinks(view.links.filter { $0 != entry.file }, of: view)
    }
    session.stores.settleKeychain()
  }
}
