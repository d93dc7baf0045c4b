import BusServer
import Control
import KeychainSelection
import Model
import Platform

// The name on the bus, and the program that has it.

extension SecretServiceServer {
  /// A name that only Keyhole's own service has, so that Keyhole never takes it for another program's keyring.
  private static let ownName = "org.keyhole.SecretService"

  private enum NameFlag {
    static let allowReplacement: UInt32 = 1
    static let replace: UInt32 = 2
    static let doNotQueue: UInt32 = 4
  }

  /// The replies of RequestName that mean that this process has the name.
  private static let owned: Set<UInt32> = [1, 4]

  /// - Returns: why it waits for the name; nil: it has the name.
  func takeName(replacing: Bool, waits: Bool) async throws(BusFailure) -> String? {
    let flags = NameFlag.doNotQueue | (replacing ? NameFlag.replace : 0)
    // First: a program that looks for it must not see the other one alone. Without it nothing is served, and of several that start at
    // once one has it.
    guard await takeOwnName() else {
      let description =
        await isOwnService() ? await description(ofOwner: replacing) : await descriptionOfOwnName()
      guard waits else { throw BusFailure(reason: description) }
      return await wait(description)
    }
    let reply = await callBus("RequestName", [.string(Self.name), .uint32(flags)])
    switch reply {
    case .success(let values):
      if case .uint32(let code)? = values.first, Self.owned.contains(code) { return nil }
      let description = await description(ofOwner: replacing)
      guard waits else { throw BusFailure(reason: description) }
      // One that serves before this one has it then.
      _ = await callBus("RequestName", [.string(Self.ownName), .uint32(NameFlag.allowReplacement)])
      return await wait(description)
    case .failure(let error):
      throw BusFailure(reason: "the bus does not give the name \(Self.name): \(error.message)")
    }
  }

  /// Has the bus give the name to this process when its owner ends; nil: it has it already.
  private func wait(_ description: String) async -> String? {
    await watchOwner()
    guard case .success(let values) = await callBus("RequestName", [.string(Self.name), .uint32(0)]),
      case .uint32(let code)? = values.first, !Self.owned.contains(code)
    else { return await takeOwnName() ? nil : description }
    return description
  }

  /// Takes the name that only Keyhole's service has, also from one that waits.
  ///
  /// - Returns: false: another program keeps it.
  func takeOwnName() async -> Bool {
    let flags = NameFlag.doNotQueue | NameFlag.replace
    guard case .success(let values) = await callBus("RequestName", [.string(Self.ownName), .uint32(flags)]),
      case .uint32(let code)? = values.first
    else { return false }
    return Self.owned.contains(code)
  }

  /// Why nothing can be served under the name.
  func descriptionOfOwnName() async -> String {
    let reply = await callBus("GetConnectionUnixProcessID", [.string(Self.ownName)])
    guard case .success(let values) = reply, case .uint32(let number)? = values.first else {
      return "another program has the name \(Self.ownName)"
    }
    let owner = NameOwner(process: Int32(clamping: number))
    if owner.isKeyhole {
      return "\(owner.description) starts to be the Secret Service, too; try again"
    }
    return
      "\(owner.description) has the name \(Self.ownName), by which Keyhole knows its own service; \(owner.stopCommand) stops it"
  }

  private func description(ofOwner isReplacing: Bool) async -> String {
    let reply = await callBus("GetConnectionUnixProcessID", [.string(Self.name)])
    guard case .success(let values) = reply, case .uint32(let number)? = values.first else {
      return "another program has the name \(Self.name)"
    }
    let owner = NameOwner(process: Int32(clamping: number))
    if owner.isKeyhole, await isOwnService() { return owner.description(in: options.runtime) }
    let remedy =
      isReplacing
      ? "it does not let itself be replaced"
      : "`keyhole service --replace` takes its place if it lets itself be replaced"
    return "\(owner.description) is the Secret Service already, and \(remedy); \(owner.stopCommand) stops it"
  }

  /// Has the bus report when another program gets the name.
  private func watchOwner() async {
    let rule =
      "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged',"
      + "arg0='\(Self.name)'"
    _ = await callBus("AddMatch", [.string(rule)])
  }

  /// Another program has the name now, for which this process waits.
  func noteOwner(_ owner: String) {
    guard !owner.isEmpty, owner != connection?.uniqueName else { return }
    Task(executorPreference: loop) {
      let reason = await self.description(ofOwner: false)
      // It may be this process's meanwhile.
      guard case .success(let values) = await self.callBus("GetNameOwner", [.string(Self.name)]),
        values.first?.text == owner
      else { return }
      await self.report(obstacle: reason)
    }
  }

  private func isOwnService() async -> Bool {
    guard case .success(let own) = await callBus("GetNameOwner", [.string(Self.ownName)]),
      case .success(let owner) = await callBus("GetNameOwner", [.string(Self.name)])
    else { return false }
    return own.first?.text != nil && own.first?.text == owner.first?.text
  }

  /// The values of the reply are gone with the message, but for numbers and texts.
  func callBus(_ method: String, _ values: [BusValue]) async -> Result<[BusValue], BusError> {
    guard let connection else { return .failure(BusError("org.freedesktop.DBus.Error.Disconnected", "")) }
    return await withCheckedContinuation { continuation in
      connection.callBus(method, values) { continuation.resume(returning: $0) }
    }
  }
}

/// The process that has a name on the bus.
struct NameOwner {
  let process: Int32
  /// Of systemd's user manager; nil: it is in none.
  let unit: String?

  init(process: Int32) {
    self.process = process
    let lines = readFile("/proc/\(process)/cgroup").split(separator: "\n")
    // A unit of the user manager is below user@UID.service.
    let last = lines.last.map { $0.split(separator: "/").map(String.init) } ?? []
    let below = last.drop { !$0.hasPrefix("user@") }.dropFirst()
    unit = below.last { $0.hasSuffix(".service") }
  }

  /// One of Keyhole's own.
  fileprivate func description(in runtime: String) -> String {
    let mount = MountRegistration.serving(in: runtime).first { $0.process == process && !$0.isService }
    let (name, end) =
      mount.map { ("the mount \($0.path)", "`keyhole unmount \($0.path.quotedForShell)`") }
      ?? ("`keyhole service`", stopCommand)
    return "\(name) (process \(process)) is the Secret Service already; \(end) ends it"
  }

  /// Whether it is one of Keyhole's processes, as far as that can be seen, for a message: any program can take a name on the bus, and
  /// other processes don't see which file one of Keyhole's executes.
  var isKeyhole: Bool {
    let files = ProcessFiles(process)
    return files.executable == nil && files.status?.name == ProcessFiles(CurrentProcess.number).status?.name
  }

  /// `/usr/bin/gnome-keyring-daemon (pid 12, unit x.service)`.
  var description: String {
    let program = ProcessFiles(process).executablePath ?? ProcessFiles(process).status?.name ?? "a program"
    return "\(program) (pid \(process)\(unit.map { ", unit \($0)" } ?? ""))"
  }

  /// The command that ends it.
  var stopCommand: String { unit.map { "`systemctl --user stop \($0)`" } ?? "`kill \(process)`" }
}
