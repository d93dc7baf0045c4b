import KeychainSelection
import Model
import Platform
import Tree
import Views

/// The files that an editor has left beside the links to views and items, with the former content in plain text.
///
/// Vim makes its backup beside the link, not beside the file that the link leads to, and so does nano with the file that it saves when it
/// is ended by a signal.
enum EditorRemains {
  /// The notes of `keyhole doctor`. It asks no person: of a vault that is locked, only the links of adopted files are known.
  static func notes(_ places: StoragePaths) -> [Note] {
    let adopted = AdoptionJournal.allEntries(in: places.state).map(\.file)
    return Set(adopted + linksOfViews(places)).sorted().flatMap(notes(besideLink:))
  }

  private static func linksOfViews(_ places: StoragePaths) -> [String] {
    guard Files.exists(places.vault), let session = try? TreeSession(silentlyFor: TreePath("views")),
      let views = session.tree.views, views.areSupported
    else { return [] }
    return ((try? views.all()) ?? []).flatMap(\.links)
  }

  private static func notes(besideLink link: String) -> [Note] {
    let (folder, name) = (Files.folder(of: link), Files.name(of: link))
    let names = ((try? Files.names(in: folder)) ?? []).sorted()
    return names.filter { isRemains($0, of: name) }.compactMap { remains in
      let path = folder == "/" ? "/\(remains)" : "\(folder)/\(remains)"
      guard (try? Files.status(path, followingLinks: false))??.isRegular == true else { return nil }
      return Note(
        subject: path,
        reason:
          "an editor has left it beside the link \(link); secrets may stand in it in plain text",
        remedy: "`shred -u \(path.quotedForShell)` overwrites and removes it; "
          + "`keyhole edit \(link.quotedForShell)` leaves none")
    }
  }

  /// Whether an editor makes a file of the one name beside a file of the other.
  static func isRemains(_ remains: String, of name: String) -> Bool {
    // Backups: `FILE~`, emacs's numbered `FILE.~1~`, nano's `FILE.save`; emacs's `#FILE#`.
    if [name + "~", name + ".save", "#\(name)#"].contains(remains) { return true }
    if remains.hasPrefix(name + ".~"), remains.hasSuffix("~") { return true }
    if remains.hasPrefix(name + ".save.") { return true }
    // Vim's swap and undo files; the dot that a name begins with is not doubled.
    let hidden = name.hasPrefix(".") ? name : "." + name
    if remains == ".\(name).un~" { return true }
    guard remains.hasPrefix(hidden + ".sw"), remains.utf8.count == hidden.utf8.count + 4 else { return false }
    return remains.utf8.last.map { (0x61...0x7A).contains($0) } == true
  }
}
