import KeychainSelection
import Model
import Platform
import SecretMemory
import Store
import Tree
import Views

/// Writes an adopted file again, from what the keychain has now.
package struct AdoptionUndo {
  private let entry: AdoptionJournal.Entry
  private let session: TreeSession
  private let places: StoragePaths

  /// - Throws: `Failure` for a file that was not adopted, or whose link is no longer there.
  package init(_ path: String) throws {
    let path = try ViewLinks.absolute(path)
    places = try StoragePaths.ofMount()
    guard let entry = try AdoptionJournal(in: places.state).entries.last(where: { $0.file == path }) else {
      throw Failure(path, "it was not adopted; nothing was changed", .notFound)
    }
    guard (try? Files.target(ofLink: path)) == entry.link else {
      throw Failure(path, "it is no longer the link to \(entry.link); nothing was changed")
    }
    self.entry = entry
    session = try TreeSession(for: TreePath(entry.target))
  }

  /// The path in the tree of the view or the item, which stays.
  package var target: String { entry.target }

  /// Puts a file with the present values in the place of the link.
  ///
  /// - Throws: `Failure`; the link is then still there.
  package func run() throws {
    var journal = try AdoptionJournal(in: places.state)
    let isView = entry.target.hasPrefix("views/")
    let path = TreePath(entry.target)
    let bytes = try session.secret(at: isView ? path : path.appending("value"))
    let temporary = entry.file + ".keyhole-undo"
    do throws(Errno) {
      try Files.remove(temporary)
      let file = try Descriptor(temporary, [.writing, .create, .exclusive, .noFollow])
      try file.write(bytes.span)
      try file.setPermissions(entry.permissions)
      try file.synchronize()
      guard try Files.target(ofLink: entry.file) == entry.link else { throw .EBUSY }
      try Files.rename(temporary, to: entry.file)
      try Files.synchronizeFolder(Files.folder(of: entry.file))
    } catch {
      _ = try? Files.remove(temporary)
      throw Failure(entry.file, "the file can't be written: \(error)")
    }
    // The entry stays as long as the old file does, so that `keyhole doctor` names that.
    if !Files.hasName(entry.file + AdoptionJournal.remainsEnding) { try journal.remove(entry.file) }
    if isView { try forgetLink() }
  }

  private func forgetLink() throws {
    try session.attempt(TreePath(entry.target)) { () throws(StoreError) in
      guard let views = session.tree.views else { return }
      let view = try views.existing(ExactString(Files.name(of: entry.target)))
      try views.setLinks(view.links.filter { $0 != entry.file }, of: view)
    }
    session.stores.settleKeychain()
  }
}
