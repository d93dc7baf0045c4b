import ArgumentParser
import Glibc
import KeychainSelection
import Model
import Platform
import Store
import Suites

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

  func run() throws {
    let places = try StoragePaths.ofMount()
    let vault = try VaultExamination(places, opensSecrets: secrets)
    var problems =
      Self.ofSystem() + SystemLimits.problems(places) + Self.ofMounts(places) + Self.ofDisks(places)
      + Self.ofSettings(places) + SystemChecks.keychain(places) + vault.problems
    for mount in MountRegistration.all(in: places.runtime) where mount.isAlive {
      problems += Self.ofRunning(mount, besides: problems)
    }
    // Several folders may be on one disk.
    var seen: Set<Problem> = []
    problems = problems.filter { seen.insert($0).inserted }
    for problem in problems {
      StandardOutput.print(line("problem", problem.subject, problem.reason, problem.remedy))
    }
    for note in SystemNotes.all + AccessNotes.all(places) + vault.notes {
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
      let error = errno
      problems.append(
        Problem(
          subject: "/dev/fuse", reason: "it can't be opened: \(systemMessage(error))",
          remedy: error == EACCES
            ? "`sudo chmod 666 /dev/fuse` lets users open it"
            : "`sudo modprobe fuse` loads the kernel's module"
        ))
    }
    return problems + SystemChecks.fusermount
  }

  private static func ofMounts(_ places: StoragePaths) -> [Problem] {
    MountRegistration.all(in: places.runtime).filter { !$0.isAlive }.map { mount in
      Problem(
        subject: mount.path, reason: "the process of this mount has died",
        remedy:
          "`keyhole mount \(mount.path.quotedForShell)` mounts it again; nothing that was stored is lost"
      )
    } + SystemChecks.mounts(places)
  }

  /// The problems of what a mount has open: its files may have been moved or replaced since.
  private static func ofRunning(_ mount: MountRegistration, besides known: [Problem]) -> [Problem] {
    do throws(Failure) {
      let running = try RunningMount(mount)
      let ofKeychain = running.keychainProblems.filter { problem in
        !known.contains { $0.reason == problem.reason }
      }
      let others = running.problems.filter { text in
        !(known + ofKeychain).contains { text == "\($0.subject): \($0.reason)" || text == $0.reason }
      }
      return ofKeychain
        + others.map { Problem(subject: mount.path, reason: $0, remedy: "`keyhole status` shows the mount") }
    } catch {
      return [Problem(subject: mount.path, reason: error.reason, remedy: "then mount it again")]
    }
  }

  /// Whether the disks of the settings and of the state take writes.
  private static func ofDisks(_ places: StoragePaths) -> [Problem] {
    let folders: [String] = [places.configuration, places.state]
    return folders.compactMap { DiskProbe.problem(of: $0) }
  }

  private static func ofSettings(_ places: StoragePaths) -> [Problem] {
    PropertyListFolder(folder: places.configuration, stateFolder: places.state).problems()
  }
}
