import Model
import Platform

/// The user whose stores a mount of root shows: the options `uid=` and `gid=`.
///
/// Root only mounts; before any store is opened the process becomes that user, for good.
package struct MountOwner {
  let group: UInt32
  private let account: Account

  var user: UInt32 { account.user }

  /// nil: the options name no user, and the mount belongs to the user of this process.
  ///
  /// - Throws: `Failure` where the user is unknown, or may not mount for another.
  package init?(_ options: MountOptions) throws {
    guard options.user != nil || options.group != nil else { return nil }
    account = try Self.account(options.user)
    group = try options.group.map(Self.group) ?? account.group
    if User.real == account.user, User.realGroup == group { return nil }
    guard User.real == 0 else {
      throw Failure(nil, "only root can mount for another user; leave `uid=` and `gid=` out, or use sudo")
    }
  }

  /// By name or by number, as chown(1) takes it.
  private static func account(_ text: String?) throws -> Account {
    guard let account = text.map({ Account($0) }) ?? Account(number: User.real) else {
      throw Failure(nil, "there is no user `\(text ?? "")`")
    }
    return account
  }

  private static func group(_ text: String) throws -> UInt32 {
    guard let number = Account.group(text) else { throw Failure(nil, "there is no group `\(text)`") }
    return number
  }

  /// Variables that are not root's alone: where systemd waits to be notified.
  private static let kept = ["NOTIFY_SOCKET"]

  /// Gives up root's rights and root's environment: what runs as the user gets none of it.
  ///
  /// - Throws: `Failure`; the process must then end.
  package func become() throws {
    do throws(Errno) { try account.become(group: group) } catch {
      throw Failure(nil, "it can't become user \(account.name): \(error)")
    }
    let kept = Self.kept.compactMap { name in environment(name).map { (name, $0) } }
    do throws(Errno) { try Environment.clear() } catch {
      throw Failure(nil, "the environment can't be cleared")
    }
    let own = [
      ("HOME", account.home), ("USER", account.name), ("LOGNAME", account.name),
      ("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LC_ALL", "C.UTF-8"),
    ]
    for (name, value) in own + kept { Environment.set(name, to: value) }
    useRuntimeFolder()
    CurrentProcess.leaveFolder()
  }

  /// Of a user who is logged in; at boot there is none yet.
  private func useRuntimeFolder() {
    let folder = "/run/user/\(user)"
    guard (try? Files.status(folder, followingLinks: false))?.owner == user else { return }
    Environment.set("XDG_RUNTIME_DIR", to: folder)
    guard Files.allows([.read, .write], folder + "/bus") else { return }
    Environment.set("DBUS_SESSION_BUS_ADDRESS", to: "unix:path=\(folder)/bus")
  }
}
