import ArgumentParser
import Control
import KeychainSelection
import Model
import Platform
import Prompting
import Service
import Store
import Vault

struct MountCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mount", abstract: "Mount the tree, by default on ~/Keyhole.",
    discussion: """
      Returns when the mount answers; a process in the background serves it until it is unmounted.

      Options for -o, with commas between them:
        keychain=auto|secret-service|vault|cluster|none
                                   which keychain is shown (auto: what it chose first, which is the
                                   Secret Service where one answers on the session bus, else the vault)
        plain-session              the same as plain-session=yes
        ro, rw                     nothing can be changed, or all (default)
        allow_other                other users may look, as far as the modes let them
        allow_root                 root may look, no other user
        uid=USER, gid=GROUP        as root: mount the stores of this user
        vault=FOLDER               another folder for the vault
        store=etcd://HOST:PORT[,HOST:PORT…]/STORE
                                   settings and keychain of a store in a cluster (`keyhole cluster`)
        settings=cluster|files     with store=: the settings of the store (default), or those of this
                                   machine; `keychain=` says the same of the keychain
        etcd-ca=FILE, etcd-cert=FILE, etcd-key=FILE
                                   TLS: the authority that is trusted, this client's certificate and key
        etcd-user=NAME             a user of the cluster; the password is read from the descriptor of
                                   etcd-password-descriptor=N, or is a credential (keyhole(1))
        layers=NAME[,NAME…]        settings of the store in layers, the lowest first, as fleet/all,host/x:
                                   of each key the last layer that has it gives the value
        write-layer=NAME           the layer that changes are written to (the last one)
        offline-secrets[=DAYS]     keep a sealed copy of the store's secrets here, which are opened from it
                                   while the cluster does not answer, for so many days (7)
        fsname=TEXT                what the mount table shows as the source
        folder=user                only on a folder of the user's, none of root's
      the settings of keyhole(5), which come before those of `keyhole config`, here as:
      \(settings)
      and those of mount(8) that make sense here: noatime, nosuid, nodev, noexec, sync, _netdev, ...
      """)

  /// The options that are settings of Keyhole's own, one a line.
  private static var settings: String {
    ConfigurationKey.allCases.filter(\.definition.isMountOption).map { key in
      let option = key.asMountOption
      let padding = String(repeating: " ", count: max(1, 27 - option.count))
      return "  \(option)\(padding)\(key.definition.summary)"
    }.joined(separator: "\n")
  }

  @Option(
    name: .short, help: ArgumentHelp("Mount options.", valueName: "options"), completion: .mountOptions)
  var o: [String] = []

  @Flag(
    help: ArgumentHelp(
      "With keychain=vault or keychain=secret-service: from now on keychain=auto means this one, for commands and "
        + "programs too. Items stay where they are."))
  var keep = false

  @Flag(
    help:
      "Also serve the vault on the session bus as org.freedesktop.secrets, the Secret Service, while it is mounted."
  )
  var service = false

  @Flag(help: "Serve the mount in this process, until it is unmounted or Ctrl-C.")
  var foreground = false

  /// Where the background process says that it is ready, or why not.
  @Option(help: .hidden)
  var readyDescriptor: Int32?

  @OptionGroup var quiet: QuietOption

  @Argument(help: "An empty folder of yours.", completion: .directory)
  var mountpoint: String?

  func run() throws {
    quiet.apply()
    var options = try MountOptions(o)
    options.servesSecretService = service
    if keep, ![.vault, .secretService].contains(options.keychain.choice) {
      throw UsageError(message: "--keep takes -o keychain=vault or -o keychain=secret-service")
    }
    guard foreground else {
      let before = try Set(MountRegistration.all(in: StoragePaths.current().runtime).map(\.process))
      let allowed = try PlainSessionUnlock(options)?.isAllowed() ?? false
      let secret = options.cluster?.passwordDescriptor
      let further =
        (allowed ? ["-o", "plain-session"] : [])
        + (secret == nil ? [] : ["-o", "etcd-password-descriptor=4"])
      try Daemon.start(arguments(further), passing: secret)
      try tellHiddenItems()
      return try NewMountUnlock(startedAfter: before)?.run() ?? ()
    }
    EndSignals.hold()
    // Before root's rights go.
    options.keychain.credential = environment("CREDENTIALS_DIRECTORY").flatMap { VaultCredential(in: $0) }
    try options.cluster?.readSecrets()
    let settled = options
    try Daemon.reporting(to: readyDescriptor) { ready in
      guard let owner = try MountOwner(settled) else { return try serve(settled, ready) }
      try serve(settled, for: owner, ready)
    }
  }

  private func serve(_ options: MountOptions, _ ready: @escaping @Sendable () -> Void) throws {
    try options.checkFuseConfiguration()
    let places = try StoragePaths.current(options)
    let mountPoint = try MountPoint(mountpoint, places)
    let server: Server
    do { server = try Server(options, places, mountPoint.path, version: KeyholeCommand.version) } catch {
      mountPoint.removeIfMade()
      throw error
    }
    try server.serve(keeping(options, places, ready))
  }

  /// The choice is recorded when the mount is ready: a keychain that can't be opened is not chosen.
  private func keeping(
    _ options: MountOptions, _ places: StoragePaths, _ ready: @escaping @Sendable () -> Void
  ) -> @Sendable () -> Void {
    guard keep else { return ready }
    return {
      ChosenKeychain.change(to: options.keychain.choice, state: places.state)
      ready()
    }
  }

  /// As root: the mount is made first, for a path that the user could not mount on, and then root's rights go.
  private func serve(
    _ options: MountOptions, for owner: MountOwner, _ ready: @escaping @Sendable () -> Void
  ) throws {
    guard let mountpoint else { throw UsageError(message: "`uid=` and `gid=` need a mount point") }
    let folder = try OwnedMountPoint(mountpoint, for: owner, options)
    let path = folder.path
    let device = try MountForOwner.make(at: folder, options, for: owner)
    do {
      try owner.become()
      let places = try StoragePaths.current(options)
      try Server(options, places, path, version: KeyholeCommand.version, device: device).serve(
        keeping(options, places, ready))
    } catch {
      try? Unmounting.take(path, lazily: true)
      throw error
    }
  }

  /// Items of the other keychain, which would seem to be lost.
  private func tellHiddenItems() throws {
    let places = try StoragePaths.ofMount()
    let shown = KeychainConfiguration.present(runtime: places.runtime).choice.rawValue
    guard let hidden = HiddenItems.beside(shown, vault: places.vault, state: places.state) else { return }
    StandardError.note(hidden.description)
  }

  private func arguments(_ further: [String]) -> [String] {
    var arguments = ["mount", "--foreground"]
    if quiet.isQuiet { arguments.append("--quiet") }
    if keep { arguments.append("--keep") }
    if service { arguments.append("--service") }
    arguments += o.flatMap { ["-o", $0] } + further
    return arguments + ["--"] + (mountpoint.map { [$0] } ?? [])
  }
}
