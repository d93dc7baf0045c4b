import KeychainSelection
import Model
import Platform
import Store

/// Faults that keep mounts from being made, used or ended, as `keyhole doctor` reports them.
package enum SystemChecks {
  /// fusermount3 mounts for users who may not: it has to be root's, and set-user-id.
  static var fusermount: [Problem] {
    guard User.real != 0 else { return [] }
    guard let path = find("fusermount3") else {
      return [
        Problem(
          subject: "fusermount3", reason: "it is not installed, so only root can mount",
          remedy: "`sudo apt-get install fuse3`")
      ]
    }
    guard let status = try? Files.status(path), status.owner != 0 || status.permissions & 0o4000 == 0 else {
      return []
    }
    return [
      Problem(
        subject: path, reason: "it is not set-user-id root, so only root can mount",
        remedy: "`sudo chown root \(path) && sudo chmod u+s \(path)`")
    ]
  }

  /// The Secret Service that `auto` keeps does not answer: every command of the keychain fails then.
  static func keychain(_ places: StoragePaths) -> [Problem] {
    guard isSecretServiceChosen(places), let reason = KeychainConfiguration.whyNoSecretService() else {
      return []
    }
    return [
      Problem(
        subject: "Secret Service",
        reason: "`keychain=auto` has chosen it first, and it can't be used: \(reason)",
        remedy:
          "log in to the desktop; until then `keyhole mount -o keychain=vault` shows the vault in its place, and with "
          + "`keyhole mount --keep -o keychain=vault` `auto` keeps to it from now on")
    ]
  }

  /// Whether commands use the Secret Service because `auto` has chosen it, and not as a mount says.
  static func isSecretServiceChosen(_ places: StoragePaths) -> Bool {
    KeychainConfiguration.present(runtime: places.runtime).choice == .automatic
      && ChosenKeychain.fetch(state: places.state) == .secretService
  }

  /// Where a program is; nil: it is in no folder of PATH.
  static func find(_ program: String) -> String? {
    let path = Environment.value("PATH") ?? "/usr/bin:/bin"
    return path.split(separator: ":").map { "\($0)/\(program)" }.first { Files.allows(.execute, $0) }
  }

  /// Mounts that nothing answers for, and processes that were stopped.
  static func mounts(_ places: StoragePaths) -> [Problem] {
    let records = MountRegistration.all(in: places.runtime)
    let alive = Set(records.filter(\.isAlive).map(\.path))
    let stopped = records.filter { $0.isAlive && isStopped($0.process) }.map { mount in
      Problem(
        subject: mount.path, reason: "its process is stopped, and whatever uses the mount waits",
        remedy: "`kill -CONT \(mount.process)` has it go on")
    }
    let silent = dead(besides: alive).map { path in
      Problem(
        subject: path, reason: "nothing answers for this mount any more",
        remedy: "`keyhole mount \(path.quotedForShell)` mounts it again; nothing that was stored is lost")
    }
    return stopped + silent
  }

  /// This user's mounts whose process has died, or whose connection was aborted. `alive`: those with a process, which
  /// are not looked at, as a stopped one would not answer. What an edit has left, the next one takes away.
  package static func dead(besides alive: Set<String> = []) -> [String] {
    MountTable().entries.filter { entry in
      entry.isKeyhole(of: User.real) && !alive.contains(entry.path) && !PrivateFolder.isOne(entry.path)
        && isDead(entry)
    }.map(\.path)
  }

  /// False also for one that does not answer within two seconds. The thread that waits is left alone.
  private static func isDead(_ entry: MountTable.Entry) -> Bool {
    Background.result(within: .seconds(2)) { entry.isDead } == true
  }

  /// By SIGSTOP, or a debugger: field 3 of proc(5)'s stat.
  private static func isStopped(_ process: Int32) -> Bool {
    let stat = readFile("/proc/\(process)/stat")
    guard let end = stat.lastIndex(of: ")"), let state = stat[end...].dropFirst(2).first else { return false }
    return state == "T" || state == "t"
  }
}
