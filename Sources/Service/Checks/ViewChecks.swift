import Control
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

  /// The latest refusal of each view and template by the mounts that answer, unless the file has changed since. What `problems` names
  /// already is left out.
  static func refusals(_ places: StoragePaths, besides problems: [Problem]) -> [Note] {
    var seen = Set(problems.map(\.subject))
    let views = (try? TreeSession(silentlyFor: TreePath("views")))?.tree.views
    return refusals(in: places).reversed().compactMap { refusal in
      guard seen.insert(refusal.path).inserted, !hasChanged(refusal.path, since: refusal.time, views) else {
        return nil
      }
      return Note(
        subject: refusal.path, reason: "refused at \(refusal.time.iso8601): \(refusal.reason)",
        remedy: "`keyhole status` has all that was refused lately")
    }
  }

  private static func refusals(in places: StoragePaths) -> [(time: Timestamp, path: String, reason: String)] {
    let mounts = MountRegistration.all(in: places.runtime).filter { $0.isAlive && !$0.isStopped }
    let all = mounts.flatMap { mount in (try? RunningMount(mount))?.refusals ?? [] }
    return all.filter { $0.path.hasPrefix("views/") || $0.path.hasPrefix("templates/") }
  }

  private static func hasChanged(_ path: String, since time: Timestamp, _ views: Views?) -> Bool {
    let name = ExactString(Files.name(of: path))
    guard let views, let view = try? views.view(name), let modified = try? views.modified(of: view) else {
      return false
    }
    return modified > time
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
