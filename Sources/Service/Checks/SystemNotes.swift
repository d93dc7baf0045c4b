import ClusterAccess
import Control
import KeychainSelection
import Platform
import Prompting

/// Facts that are no fault of the system's, and yet worth knowing: where secrets may end up, and which program keeps them.
enum SystemNotes {
  static var all: [Note] { cores + swaps + bus + mountTable + pinentry + hidden + servers }

  /// Without one, a question that takes a person is a refusal.
  private static var pinentry: [Note] {
    let names = ["pinentry", "pinentry-curses", "pinentry-tty"]
    let paths = Pinentry.programFolders.flatMap { folder in names.map { "\(folder)/\($0)" } }
    guard !paths.contains(where: { Files.allows(.execute, $0) }) else { return [] }
    return [
      Note(
        subject: "pinentry",
        reason: "none is installed, so no question can be asked before a guarded secret is opened",
        remedy: "`sudo apt-get install pinentry-curses`")
    ]
  }

  /// Versions of etcd with faults that matter, of the stores that are mounted.
  private static var servers: [Note] {
    guard let places = try? StoragePaths.current() else { return [] }
    let mounts = MountRegistration.serving(in: places.runtime).compactMap { try? RunningMount($0) }
    return mounts.flatMap { mount in
      mount.serverVersions.compactMap { version in
        ServerFaults.reason(of: version).map { reason in
          Note(
            subject: mount.store ?? "the cluster",
            reason: "its servers are etcd \(version), of which \(reason)",
            remedy: "update them: 3.4.42 and 3.5.28 are mended; what is sealed is safe from it")
        }
      }
    }
  }

  /// Items of the keychain that is not shown.
  private static var hidden: [Note] {
    guard let places = try? StoragePaths.ofMount() else { return [] }
    let shown = KeychainConfiguration.present(runtime: places.runtime).choice
    let engine = shown == .automatic ? ChosenKeychain.fetch(state: places.state) : shown
    guard
      let hidden = HiddenItems.beside(
        engine?.rawValue, vault: places.vault, state: places.state, patience: 1_000)
    else { return [] }
    return [Note(subject: "keychain", reason: hidden.reason, remedy: hidden.remedy)]
  }

  /// Keyhole itself leaves no core file; the programs that read secrets do.
  private static var cores: [Note] {
    cores(
      limits: readFile("/proc/\(CurrentProcess.parent)/limits"),
      pattern: readFile("/proc/sys/kernel/core_pattern"))
  }

  /// `limits`: those of the caller, as proc(5) has them: this process has given up its own.
  static func cores(limits: String, pattern: String) -> [Note] {
    let name = "Max core file size"
    let limit = limits.split(separator: "\n").first { $0.hasPrefix(name) }?
      .dropFirst(name.count).split(separator: " ").first
    guard let limit, limit != "0", !pattern.isEmpty else { return [] }
    return [
      Note(
        subject: "core files", reason: "a program that crashes while it holds a secret leaves it in one",
        remedy: "`ulimit -c 0` in the shell, `LimitCORE=0` in a unit")
    ]
  }

  /// Locked memory is never swapped, but hibernation writes all of it; not so what memfd_secret(2) gives.
  private static var swaps: [Note] {
    LockableMemory.hasSecretMemory ? [] : swaps(readFile("/proc/swaps"), isHarmless: isHarmless)
  }

  /// Of the text of /proc/swaps.
  static func swaps(_ text: String, isHarmless: (_ device: String) -> Bool) -> [Note] {
    text.split(separator: "\n").dropFirst().compactMap { line in
      guard let device = line.split(separator: " ").first.map(String.init), !isHarmless(device) else {
        return nil
      }
      return Note(
        subject: device, reason: "hibernation writes secrets to this swap, and nothing encrypts it",
        remedy: "`sudo swapoff \(device)`, or encrypt it, or boot with `secretmem.enable=1`")
    }
  }

  /// In memory, or encrypted by dm-crypt.
  private static func isHarmless(_ device: String) -> Bool {
    let name = MountPoint.absolute(device).split(separator: "/").last ?? ""
    return name.hasPrefix("zram") || readFile("/sys/block/\(name)/dm/uuid").hasPrefix("CRYPT-")
  }

  /// A bus that was promised and a keyring on it.
  private static var bus: [Note] {
    guard environment("DBUS_SESSION_BUS_ADDRESS") != nil, let places = try? StoragePaths.ofMount() else {
      return []
    }
    return bus(shown: SystemChecks.shownKeychain(places))
  }

  /// `shown`: the keychain that commands use; nil: `auto` has not chosen yet.
  private static func bus(shown: KeychainChoice?) -> [Note] {
    // Where the vault was chosen, it does not matter which service answers.
    guard shown == nil || shown == .secretService else { return [] }
    guard let reason = KeychainConfiguration.whyNoSecretService() else { return freshKeyring }
    // Of a service that was chosen it is a problem: the vault does not take its place.
    guard shown == nil else { return [] }
    return [
      Note(
        subject: "Secret Service", reason: "\(reason), so the keychain is going to be the vault",
        remedy:
          "`systemctl --user start dbus gnome-keyring-daemon`, or `keyhole mount --keep -o keychain=vault` if that is meant"
      )
    ]
  }

  private static var freshKeyring: [Note] {
    guard KeychainConfiguration.hasFreshSecretService() else { return [] }
    return [
      Note(
        subject: "Secret Service", reason: "it has no collection yet",
        remedy:
          "the first secret that is stored makes one; the service asks for its password then, which takes a display. Without one, `keyhole mount --keep -o keychain=vault` uses Keyhole's own vault"
      )
    ]
  }

  /// fusermount3 wants it to unmount.
  private static var mountTable: [Note] {
    guard User.real != 0, !Files.allows(.read, "/etc/mtab") else { return [] }
    return [
      Note(
        subject: "/etc/mtab", reason: "it is missing, and fusermount3 can't unmount without it",
        remedy: "`sudo ln -s ../proc/self/mounts /etc/mtab`")
    ]
  }
}
