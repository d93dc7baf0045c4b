import KeychainSelection
import Model
import Platform
import Store
import Tree
import Views

/// The faults of views, and links to them that were replaced by files.
enum ViewChecks {
  /// Looking must not make a vault. It asks no person: of a vault that is locked, a mount that has it open is asked (`RunningMount`).
  static func problems(_ places: StoragePaths) -> [Problem] {
    guard Files.exists(places.vault), let session = try? TreeSession(silentlyFor: TreePath("views")),
      let views = session.tree.views,
      views.areSupported, let all = try? views.all()
    else { return [] }
    return views.problems() + all.flatMap { replacedLinks(of: $0, places) }
  }

  /// A link that was removed is none of Keyhole's business.
  private static func replacedLinks(of view: View, _ places: StoragePaths) -> [Problem] {
    view.links.compactMap { link in
      guard let status = try? Files.status(link, followingLinks: false), !status.isLink else { return nil }
      return Problem(
        subject: link,
        reason:
          "a file has taken the place of the link to views/\(view.name.string), as some editors and git do it",
        remedy:
          "`keyhole view --take-in \(link.quotedForShell)` shows what it changes, and takes it over; or remove it, and "
          + "`keyhole view \(view.name.string.quotedForShell) --link \(link.quotedForShell)`")
    }
  }
}
