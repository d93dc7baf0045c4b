import Model
import Platform
import Store
import Tree

/// The links that have the places of adopted files: one that leads nowhere, that a file has replaced, or that is gone.
enum AdoptionChecks {
  /// Links to items; those to views are in `ViewChecks`. It asks no person; of a keychain that can't be read nothing is said.
  static func problems(_ places: StoragePaths) -> [Problem] {
    let entries = adopted(places).filter { !TreePath($0.target).isView }
    guard !entries.isEmpty, Files.exists(places.vault),
      let session = try? TreeSession(silentlyFor: TreePath("keychain"))
    else { return [] }
    return entries.compactMap { problem($0, session) }
  }

  private static func problem(_ entry: AdoptionJournal.Entry, _ session: TreeSession) -> Problem? {
    guard let status = try? Files.status(entry.file, followingLinks: false) else { return nil }
    guard status.isLink else {
      return Problem(
        subject: entry.file, reason: "a file has taken the place of the link to \(entry.target)",
        remedy:
          "`keyhole adopt \(entry.file.quotedForShell)` moves it into the keychain, to an item of its own; or remove it"
      )
    }
    guard let link = try? Files.target(ofLink: entry.file), let path = AdoptedTarget.path(of: link, entry)
    else {
      return nil
    }
    let present: String?
    do {
      guard try session.existingNode(at: TreePath(path)) == nil else { return nil }
      present = try AdoptedTarget.path(of: entry, session)
    } catch { return nil }
    if let present, let mount = AdoptedTarget.mount(of: link, to: path + "/value") {
      let target = mount + present + "/value"
      return Problem(
        subject: entry.file, reason: "the link leads to \(path), and the item is \(present) now",
        remedy: "`ln -sfn \(target.quotedForShell) \(entry.file.quotedForShell)` has it lead there")
    }
    return Problem(
      subject: entry.file, reason: "the link leads to \(path), which was removed",
      remedy:
        "`keyhole undo \(path.quotedForShell)` brings the item back; or remove the link: `rm \(entry.file.quotedForShell)`"
    )
  }

  /// Links that are gone, in folders that are still there.
  static func notes(_ places: StoragePaths) -> [Note] {
    adopted(places).compactMap { entry in
      guard !Files.hasName(entry.file), Files.exists(Files.folder(of: entry.file)) else { return nil }
      let file = entry.file.quotedForShell
      return Note(
        subject: entry.file, reason: "the link to \(entry.target), which has its values, is gone",
        remedy:
          "`ln -s \(entry.link.quotedForShell) \(file)` puts it back, and `keyhole adopt --undo \(file)` writes the file, with the secrets in it"
      )
    }
  }

  private static func adopted(_ places: StoragePaths) -> [AdoptionJournal.Entry] {
    AdoptionJournal.allEntries(in: places.state).filter { [.adopted, .erasing].contains($0.stage) }
  }
}
