import BusServer
import Control
import KeychainSelection
import Model
import Platform

/// The two files of `keyhole service --enable`: the session bus starts the service with the first program that asks for it.
///
/// They are of this user only, in XDG_DATA_HOME, where they come before those of other keyrings.
package struct SecretServiceActivation {
  private static let mark = "# Written by `keyhole service --enable`; `keyhole service --disable` removes it."
  private static let folderMark = "# Folders that it has made above this file: "
  private static let unitName = "keyhole-secrets.service"

  private let program: String
  private let data: String
  private let unit: String
  private let activation: String

  /// - Throws: `Failure` where there is no home.
  package init() throws {
    let places = try StoragePaths.current()
    data = Environment.absolutePath("XDG_DATA_HOME") ?? places.home + "/.local/share"
    unit = "\(data)/systemd/user/\(Self.unitName)"
    activation = "\(data)/dbus-1/services/\(SecretServiceServer.name).service"
    do throws(Errno) { program = try Files.target(ofLink: "/proc/self/exe") } catch {
      throw Failure(nil, "the program's own path can't be read: \(error)")
    }
  }

  /// Writes both files.
  ///
  /// - Returns: their paths.
  /// - Throws: `Failure` where a file of another program is in the way; nothing is written then.
  package func enable() throws -> [String] {
    guard !program.utf8.contains(where: { $0 <= UInt8(ascii: " ") || $0 == UInt8(ascii: "%") }) else {
      throw Failure(program, "a unit can't name this path: it has blanks or `%` in it")
    }
    for path in [unit, activation] { try requireOwnOrAbsent(path) }
    let steps = ConfigurationStep.countingFolders([
      ConfigurationStep(path: unit, change: .file(unitText)),
      ConfigurationStep(path: activation, change: .file(activationText)),
    ])
    var new: [ConfigurationStep] = []
    do {
      for step in steps {
        guard case .file(let text) = step.change else { continue }
        if !Files.hasName(step.path) { new.append(step) }
        // Of a file that is written again, those of the first time.
        let folders = max(step.newFolders, madeFolders(above: step.path))
        try write("\(Self.mark)\n\(Self.folderMark)\(folders)\n\(text)", to: step.path)
      }
    } catch {
      // One file without the other would be half a service.
      for step in new.reversed() where Files.hasName(step.path) { _ = try? step.remove() }
      throw error
    }
    reload()
    return [unit, activation]
  }

  /// The files that were there when `disable` was called.
  package struct Disabled {
    package var removed: [String] = []
    /// Those of another program.
    package var left: [String] = []
  }

  /// Removes each of both files that `enable` has written, and the folders that it made for them and that have nothing else in them.
  ///
  /// - Throws: `Failure` for one that can't be removed.
  package func disable() throws -> Disabled {
    var disabled = Disabled()
    for path in [activation, unit] where (try? Files.status(path, followingLinks: false)) != nil {
      guard isOwnOrAbsent(path) else {
        disabled.left.append(path)
        continue
      }
      let folders = madeFolders(above: path)
      _ = try ConfigurationStep(path: path, change: .file(""), newFolders: folders).remove()
      disabled.removed.append(path)
    }
    reload()
    return disabled
  }

  /// For a person: why the session bus may not see the files; nil: they are where it looks by default.
  ///
  /// dbus-daemon(1) takes the home of passwd(5), not HOME, unless XDG_DATA_HOME is in its own environment.
  package var note: String? {
    guard let home = User.home, data != home + "/.local/share" else { return nil }
    return "the session bus looks in \(home)/.local/share, unless it was started with "
      + "XDG_DATA_HOME=\(data.quotedForShell): without that, it does not start the service, and `keyhole service` does"
  }

  /// For a person: the program that is the Secret Service now, so that the bus starts no other one, and the command that ends it; nil:
  /// none is, or it is Keyhole.
  package static func present() throws -> String? {
    guard let address = SessionBus.address,
      let reply = try? BusConnection.callOnce(
        "GetConnectionUnixProcessID", [.string(SecretServiceServer.name)], at: address),
      case .uint32(let number)? = reply.first
    else { return nil }
    let owner = NameOwner(process: Int32(clamping: number))
    let places = try StoragePaths.current()
    guard !MountRegistration.serving(in: places.runtime).contains(where: { $0.process == owner.process })
    else { return nil }
    return "\(owner.description) is the Secret Service until it ends: \(owner.stopCommand) stops it, "
      + "and the next program that asks has Keyhole started. `keyhole migrate --from secret-service --to vault` brings its items over first"
  }

  /// For a person: the service that still runs, and the command that ends it; nil: none does.
  package static func running() throws -> String? {
    let places = try StoragePaths.current()
    guard let service = MountRegistration.serving(in: places.runtime).first(where: \.isService) else {
      return nil
    }
    let owner = NameOwner(process: service.process)
    return "`keyhole service` (process \(service.process)) still serves; \(owner.stopCommand) ends it"
  }

  /// A symbolic link counts by itself, also where it leads to nothing.
  private func isOwnOrAbsent(_ path: String) -> Bool {
    guard let status = try? Files.status(path, followingLinks: false) else { return true }
    return status.kind != .link && readFile(path).hasPrefix(Self.mark)
  }

  private func requireOwnOrAbsent(_ path: String) throws {
    guard !isOwnOrAbsent(path) else { return }
    let isLink = (try? Files.status(path, followingLinks: false))?.kind == .link
    let found = isLink ? "this symbolic link" : "this file"
    throw Failure(path, "another program has put \(found) there; move it away first")
  }

  /// The number that `enable` has noted in a file; 0: there is no file of it.
  private func madeFolders(above path: String) -> Int {
    guard isOwnOrAbsent(path) else { return 0 }
    let line = readFile(path).split(separator: "\n").first { $0.hasPrefix(Self.folderMark) }
    return max(0, line.flatMap { Int($0.dropFirst(Self.folderMark.count)) } ?? 0)
  }

  private func write(_ text: String, to path: String) throws {
    UserFolders.make(path.split(separator: "/").dropLast().joined(separator: "/"))
    do throws(Errno) {
      let temporary = path + ".keyhole-new"
      _ = try? Files.remove(temporary)
      try Descriptor(temporary, [.writing, .create, .exclusive, .noFollow]).write(Array(text.utf8))
      try Files.rename(temporary, to: path)
    } catch {
      throw Failure(path, "it can't be written: \(error)")
    }
  }

  private var unitText: String {
    """
    [Unit]
    Description=The vault of Keyhole as the Secret Service
    Documentation=man:keyhole-service(1)

    [Service]
    Type=dbus
    BusName=\(SecretServiceServer.name)
    ExecStart=\(program) service --foreground
    UMask=0077
    LimitCORE=0
    OOMScoreAdjust=-100
    Environment=SWIFT_BACKTRACE=enable=no

    """
  }

  private var activationText: String {
    """
    [D-BUS Service]
    Name=\(SecretServiceServer.name)
    Exec=\(program) service --foreground
    SystemdService=\(Self.unitName)

    """
  }

  /// Has the user manager and the bus read the files. Without them, the next ones do.
  private func reload() {
    let manager = try? Child(
      ["/usr/bin/systemctl", "--user", "daemon-reload"], input: .nothing, errors: .discarded)
    manager?.wait()
    if let address = SessionBus.address { _ = try? BusConnection.callOnce("ReloadConfig", at: address) }
  }
}
