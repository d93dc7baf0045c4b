import Model
import Platform
import SecretMemory
import Store
import Tree

/// Looks for secrets in the files of programs that keep them without encryption.
package enum PlainSecrets {
  /// A file with secrets.
  package struct Finding: Equatable {
    package let path: String
    package let count: Int
  }

  /// In the known places of a home and of the working folder. Links are not followed: those lead to Keyhole, or to a
  /// file that is found by its own name.
  package static func find(home: String, folder: String) -> [Finding] {
    PlainPlace.known(home: home, folder: folder).compactMap { place in
      guard let text = try? read(place.path) else { return nil }
      let count = place.secrets(in: text)
      return count > 0 ? Finding(path: place.path, count: count) : nil
    }
  }

  /// The notes of `keyhole doctor`. `problems`: what it says of a file already, as of one that has taken the place of a view's link,
  /// has another remedy.
  static func notes(_ places: StoragePaths, besides problems: [Problem]) -> [Note] {
    let named = Set(problems.map(\.subject))
    let findings = find(home: places.home, folder: (try? Files.realPath(".")) ?? places.home)
    return remains(places)
      + findings.filter { !named.contains($0.path) }.map { finding in
        Note(
          subject: finding.path,
          reason:
            "\(finding.count == 1 ? "a secret stands" : "\(finding.count) secrets stand") in it in plain text",
          remedy:
            "`keyhole adopt \(finding.path.quotedForShell)` moves \(finding.count == 1 ? "it" : "them") into the keychain, and puts a link in its place"
        )
      }
  }

  /// Files that were adopted, and not overwritten.
  private static func remains(_ places: StoragePaths) -> [Note] {
    AdoptionJournal.allEntries(in: places.state).flatMap { entry in
      let files = [
        (
          entry.file + AdoptionJournal.remainsEnding,
          "an adopted file is still there, with its secrets in plain text"
        ),
        (
          entry.file + AdoptionJournal.undoEnding,
          "it has the secrets of \(entry.file) in plain text: `keyhole adopt --undo` was interrupted"
        ),
      ]
      return interruption(entry) + plainCopies(files)
    }
  }

  private static func interruption(_ entry: AdoptionJournal.Entry) -> [Note] {
    let file = entry.file.quotedForShell
    switch entry.stage {
    case .making:
      return [
        Note(
          subject: entry.file,
          reason:
            "a `keyhole adopt` of it was interrupted; if it has stored anything, that is in \(entry.target)",
          remedy: "`keyhole adopt \(file)` goes on, and `keyhole adopt --undo \(file)` takes it back")
      ]
    case .undoing:
      return [
        Note(
          subject: entry.file, reason: "a `keyhole adopt --undo` of it was interrupted",
          remedy: "`keyhole adopt --undo \(file)` goes on")
      ]
    case .adopted, .erasing, .undone: return []
    }
  }

  private static func plainCopies(_ files: [(path: String, reason: String)]) -> [Note] {
    files.filter { (try? Files.status($0.path, followingLinks: false))??.isRegular == true }.map { file in
      Note(
        subject: file.path, reason: file.reason,
        remedy: "`shred -u \(file.path.quotedForShell)` overwrites and removes it")
    }
  }

  private static func read(_ path: String) throws(Errno) -> SecretBytes {
    let file = try Descriptor(path, [.reading, .noFollow, .nonBlocking])
    let status = try file.status
    guard status.isRegular, status.size > 0, status.size <= FileTree.secretLimit else { throw .EINVAL }
    guard var bytes = try? SecretBytes(count: Int(clamping: status.size)) else { throw .ENOMEM }
    var span = bytes.mutableSpan
    let count = try file.fill(&span, at: 0)
    guard count == bytes.count else { throw .EBUSY }
    return bytes
  }
}
