import ArgumentParser
import Glibc
import Keychains
import Model
import Store
import Suites
import Vault

struct DoctorCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor", abstract: "Look for what is wrong, and say what mends it.",
    discussion: """
      It looks at FUSE, mounts, stores, permissions, the keyring and its bus, and at the settings for inotify, locked \
      memory, swap and core files. Each line begins with `ok`, `note` or `problem` and says what mends it; the exit \
      code is 1 where there is a problem.
      """)

  func run() throws {
    let places = try Places.ofMount()
    let problems =
      Self.ofSystem() + SystemLimits.problems(places) + Self.ofMounts(places) + Self.ofSettings(places)
      + Self.ofVault(places)
    for problem in problems {
      StandardOutput.print(line("problem", problem.subject, problem.reason, problem.remedy))
    }
    for note in SystemNotes.all + AccessNotes.all(places) {
      StandardOutput.print(line("note", note.subject, note.reason, note.remedy))
    }
    guard problems.isEmpty else {
      throw Failure(
        nil, problems.count == 1 ? "1 problem was found" : "\(problems.count) problems were found")
    }
    StandardOutput.print(
      "ok       FUSE, mounts, settings in \(places.configuration), vault in \(places.vault), inotify, locked memory"
    )
  }

  private func line(_ kind: String, _ subject: String, _ reason: String, _ remedy: String) -> String {
    let padding = String(repeating: " ", count: max(1, 9 - kind.count))
    return "\(kind)\(padding)\(subject): \(reason); \(remedy)".escapedForTerminal
  }

  private static func ofSystem() -> [Problem] {
    var problems: [Problem] = []
    if unsafe access("/dev/fuse", R_OK | W_OK) != 0 {
      problems.append(
        Problem(
          subject: "/dev/fuse", reason: "it can't be opened: \(systemMessage(errno))",
          remedy:
            "`sudo modprobe fuse` loads the kernel's module, `sudo chmod 666 /dev/fuse` lets users open the device"
        ))
    }
    return problems + SystemChecks.fusermount
  }

  private static func ofMounts(_ places: Places) -> [Problem] {
    MountRecord.all(in: places.runtime).filter { !$0.isAlive }.map { mount in
      Problem(
        subject: mount.path, reason: "the process of this mount has died",
        remedy:
          "`keyhole mount \(SystemChecks.quoted(mount.path))` mounts it again; nothing that was stored is lost"
      )
    } + SystemChecks.mounts(places)
  }

  private static func ofSettings(_ places: Places) -> [Problem] {
    PropertyListFolder(folder: places.configuration, stateFolder: places.state).problems()
  }

  /// A vault that was never made is no problem, and looking must not make one.
  private static func ofVault(_ places: Places) -> [Problem] {
    guard unsafe access(places.vault, F_OK) == 0 else { return [] }
    do throws(StoreError) {
      let vault = try VaultEngine(directory: places.vault, stateDirectory: places.state)
      // What is in it can be checked only once it is open.
      if vault.lockState == .open { _ = try vault.items() }
      return vault.problems()
    } catch {
      return [
        Problem(subject: places.vault, reason: reason(error), remedy: remedy(error))
      ]
    }
  }

  private static func reason(_ error: StoreError) -> String {
    // A file that is missing, or open to others: nobody was asked and refused.
    if case .accessDenied(let reason) = error { reason } else { error.message }
  }

  /// What is refused for its rights says by itself what to do.
  private static func remedy(_ error: StoreError) -> String {
    switch error {
    case .accessDenied, .unreachable, .unsupported, .noSpace, .readOnly: "nothing was changed"
    default: "nothing was changed; put the missing or damaged file back from a backup"
    }
  }
}
