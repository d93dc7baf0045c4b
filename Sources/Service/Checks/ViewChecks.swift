import KeychainSelection
import Model
import Platform
import Store
import Tree
import Views

/// The faults of views, and links to them that were replaced by files or lead nowhere.
enum ViewChecks {
  /// Looking must not make a vault. It asks no person: of a vault that is locked, a mount that has it open is asked (`RunningMount`).
  static func problems(_ places: StoragePaths) -> [Problem] {
    guard Files.exists(places.vault), let session = try? TreeSession(silentlyFor: TreePath("views")),
      let views = session.tree.views,
      views.areSupported, let all = try? views.all()
    else { return [] }
    let names = Set(all.map(\.name.string))
    let removed = (try? views.removed()) ?? []
    return views.problems() + all.flatMap { links(of: $0, besides: names) }
      + removed.flatMap { linksOfRemoved($0, besides: names) }
  }

  /// A link that was removed, or leads to something else, is none of Keyhole's business.
  private static func links(of view: View, besides names: Set<String>) -> [Problem] {
    let name = view.name.string
    return view.links.compactMap { link in
      let command = "`keyhole view \(name.quotedForShell) --link \(link.quotedForShell)`"
      switch ViewLink(path: link).state(of: name) {
      case .isReplaced:
        return Problem(
          subject: link,
          reason: "a file has taken the place of the link to views/\(name), as some editors and git do it",
          remedy:
            "`keyhole view --take-in \(link.quotedForShell)` shows what it changes, and takes it over; or remove it, and \(command)"
        )
      case .leadsTo(let old) where !names.contains(old):
        return Problem(
          subject: link, reason: "the link leads to views/\(old), and this view is views/\(name) now",
          remedy: "\(command) has it lead there")
      default: return nil
      }
    }
  }

  private static func linksOfRemoved(_ view: View, besides names: Set<String>) -> [Problem] {
    let name = view.name.string
    return view.links.compactMap { link in
      guard !names.contains(name), ViewLink(path: link).state(of: name) == .inPlace else { return nil }
      return Problem(
        subject: link, reason: "the link leads to views/\(name), which was removed",
        remedy:
          "`keyhole undo \("views/\(name)".quotedForShell)` brings the view back; or remove the link: `rm \(link.quotedForShell)`"
      )
    }
  }
}
