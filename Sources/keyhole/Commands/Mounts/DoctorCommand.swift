import ArgumentParser
import Model
import Service
import Store

struct DoctorCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor", abstract: "Look for what is wrong, and say what mends it.",
    discussion: """
      It looks at FUSE, mounts, stores, permissions, the keyring and its bus, and at the settings for inotify, locked \
      memory, swap and core files. Each line begins with `ok`, `note` or `problem` and says what mends it; the exit \
      code is 1 where there is a problem. What is in a vault that takes a passphrase is known to the mount that has \
      unlocked it, which is asked.
      """)

  @Flag(help: "Open every secret of the vault too, and name those that are damaged, swapped or missing.")
  var secrets = false

  @Flag(help: "A JSON array of objects: kind (problem or note), subject, reason and remedy.")
  var json = false

  @OptionGroup var quiet: QuietOption

  func run() throws {
    quiet.apply()
    let places = try StoragePaths.ofMount()
    let found = try examine(places)
    guard !json else { return try showJSON(found) }
    for problem in found.problems {
      StandardOutput.print(line("problem", problem.subject, problem.reason, problem.remedy))
    }
    for note in found.notes {
      StandardOutput.print(line("note", note.subject, note.reason, note.remedy))
    }
    try requireNone(found.problems.count)
    StandardOutput.print(
      "ok       FUSE, mounts, settings in \(places.configuration), vault in \(places.vault), inotify, locked memory"
    )
  }

  private func examine(_ places: StoragePaths) throws -> Examination {
    let bar = ProgressBar(total: nil, "examining")
    defer { bar.end() }
    return try Examination(
      places, opensSecrets: secrets, onItem: { bar.show($0, of: $1, "opening secrets") },
      onCheck: { bar.show($0, of: $1, "examining") })
  }

  private func showJSON(_ found: Examination) throws {
    var list = JSONList()
    let problems = found.problems.map { ("problem", $0.subject, $0.reason, $0.remedy) }
    for (kind, subject, reason, remedy) in problems
      + found.notes.map({ ("note", $0.subject, $0.reason, $0.remedy) })
    {
      list.add([
        ("kind", kind.quotedAsJSON), ("subject", subject.quotedAsJSON), ("reason", reason.quotedAsJSON),
        ("remedy", remedy.quotedAsJSON),
      ])
    }
    list.end()
    try requireNone(found.problems.count)
  }

  private func requireNone(_ count: Int) throws {
    guard count > 0 else { return }
    throw Failure(nil, count == 1 ? "1 problem was found" : "\(count) problems were found")
  }

  private func line(_ kind: String, _ subject: String, _ reason: String, _ remedy: String) -> String {
    let padding = String(repeating: " ", count: max(1, 9 - kind.count))
    let text = "\(kind)\(padding)\(subject): \(reason); \(remedy)".escapedForTerminal
    // One line for each, also where a name has several.
    return text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map { String($0) }
      .joined(separator: "\\n")
  }
}
