import Control
import KeychainSelection
import Model
import Platform
package import Store
import Suites

/// The findings of `keyhole doctor`: in the system, in the mounts and in the stores.
package struct Examination {
  /// The faults that keep Keyhole from working, each once.
  package let problems: [Problem]
  private let places: StoragePaths
  /// nil: the user lacks rights to the vault, and nothing in it was looked at.
  private let notesOfVault: [Note]?
  /// Whether every process that serves the keychain goes on: one that is stopped answers nothing about its items.
  private let isServed: Bool

  /// It asks the keychain and its bus, which may take seconds: the problems should be printed before.
  package var notes: [Note] {
    SystemNotes.all + PlainSecrets.notes(places, besides: problems) + AdoptionChecks.notes(places)
      + CredentialInstallation.notes(places)
      + (notesOfVault ?? [])
      + (notesOfVault != nil && isServed
        ? EditorRemains.notes(places) + AccessNotes.all(places)
          + ViewChecks.refusals(places, besides: problems) : [])
  }

  /// Called with the amount so far, and of all.
  package typealias Progress = (_ done: Int, _ total: Int) -> Void

  /// - Parameters:
  ///   - places: of the stores.
  ///   - opensSecrets: each secret of the vault is opened too.
  ///   - onItem: called with the number of items whose secrets were opened.
  ///   - onCheck: called with the number of checks that are done.
  /// - Throws: `Failure` where the vault can't be examined.
  package init(
    _ places: StoragePaths, opensSecrets: Bool, onItem: Progress = { _, _ in },
    onCheck: Progress = { _, _ in }
  ) throws {
    let rights = StoreRights.ofVault(places)
    // A stopped process is a problem by itself, and would not answer.
    let serving = MountRegistration.serving(in: places.runtime)
    let mounts = serving.filter { !$0.isStopped }
    let isServed = mounts.count == serving.count
    self.isServed = isServed
    // Without rights the vault would seem to be damaged or older than it is.
    let vault = rights.isEmpty ? try VaultExamination(places, opensSecrets: opensSecrets, onItem) : nil
    let checks: [() -> [Problem]] = [
      Self.ofSystem, { SystemLimits.problems(places) }, { Self.ofMounts(places) }, { Self.ofDisks(places) },
      { Self.ofSettings(places) }, { SystemChecks.keychain(places) }, { vault?.problems ?? rights },
      { rights.isEmpty && isServed ? ViewChecks.problems(places) + AdoptionChecks.problems(places) : [] },
    ]
    let count = checks.count + mounts.count
    var problems: [Problem] = []
    for (index, check) in checks.enumerated() {
      problems += check()
      onCheck(index + 1, count)
    }
    for (index, mount) in mounts.enumerated() {
      problems += Self.ofRunning(mount, besides: problems)
      onCheck(checks.count + index + 1, count)
    }
    // Several folders may be on one disk.
    var seen: Set<Problem> = []
    self.problems = problems.filter { seen.insert($0).inserted }
    self.places = places
    notesOfVault = vault?.notes
  }

  private static func ofSystem() -> [Problem] {
    var problems: [Problem] = []
    do throws(Errno) { try Files.require([.read, .write], "/dev/fuse") } catch {
      problems.append(
        Problem(
          subject: "/dev/fuse", reason: "it can't be opened: \(error)",
          remedy: error == .EACCES
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
          "\(mount.remedyOfDeath); nothing that was stored is lost"
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
        + others.map {
          Problem(
            subject: mount.path, reason: $0,
            remedy: "`keyhole status` shows the \(mount.isService ? "service" : "mount")")
        }
    } catch {
      let remedy = mount.isService ? "then `keyhole service` starts it again" : "then mount it again"
      return [Problem(subject: mount.path, reason: error.reason, remedy: remedy)]
    }
  }

  /// Whether the disks of the settings and of the state take writes.
  private static func ofDisks(_ places: StoragePaths) -> [Problem] {
    let folders: [String] = [places.configuration, places.state]
    return folders.compactMap { DiskProbe.problem(of: $0) }
  }

  private static func ofSettings(_ places: StoragePaths) -> [Problem] {
    let rights = StoreRights.ofSettings(places)
    guard rights.isEmpty else { return rights }
    let folder = PropertyListFolder(folder: places.configuration, stateFolder: places.state)
    let suite = SuiteConfiguration(in: SettingsStore(engine: folder))
    return folder.problems() + suite.problems(in: places.configuration)
  }
}
