import ArgumentParser
import ClusterAccess
import Model
import Platform
import Prompting
import SecretMemory
import Service

struct ClusterRequestsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "requests", abstract: "List the devices that ask to belong to the store, by their numbers.")

  @OptionGroup var address: ClusterAddressOptions

  @Flag(help: "A JSON array of objects: id.")
  var json = false

  func run() throws {
    let requests = try address.device().requests()
    guard json else { return requests.forEach { StandardOutput.print($0) } }
    JSONList.print(requests) { [("id", $0.quotedAsJSON)] }
  }
}

struct ClusterApproveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "approve", abstract: "Let a device belong to the store, by the code that it shows.",
    discussion: """
      Takes the passphrase of this device and the code that the other one shows, typed. Then it prints the code that is to be \
      typed on the other one: of what this device has read, so that both are known to speak of the same store and the same keys. \
      Without a terminal both are lines of standard input.
      """)

  @OptionGroup var address: ClusterAddressOptions

  func run() throws {
    let device = try address.device()
    let passphrase = try ClusterInput.passphrase()
    guard let code = try ClusterInput.code("The code that the other device shows: ") else {
      throw Failure(nil, "no code was typed; nothing was changed")
    }
    let approved = try device.approve(code, passphrase)
    StandardError.write(
      "Device \(approved.id) belongs to the store. Type this code on it, for `keyhole cluster join`:\n")
    StandardOutput.print(approved.code)
  }
}

struct ClusterMembersCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "members", abstract: "List the members of the store: devices, and recovery codes.",
    discussion: """
      Every device stores a signed record of what it has seen, every two minutes or so. While the store is mounted, the time of the \
      last one that was read is printed for each other device. A record that does not fit what is shown here is an error: the devices \
      are shown different histories, or changes are kept back.
      """)

  @OptionGroup var address: ClusterAddressOptions

  @Flag(
    help:
      "A JSON array of objects: id; kind, which is device, this device or recovery code; and heard, where it is known."
  )
  var json = false

  func run() throws {
    let device = try address.device()
    let mount = device.mount()
    let heard = Dictionary((mount?.otherDevices ?? []).map { ($0.id, $0.heard) }) { $1 }
    let members = try device.members().map { member in
      let kind = member.isRecoveryCode ? "recovery code" : member.isThisDevice ? "this device" : "device"
      return (id: member.id, kind: kind, heard: heard[member.id])
    }
    if json {
      JSONList.print(members) { member in
        let fields = [("id", member.id.quotedAsJSON), ("kind", member.kind.quotedAsJSON)]
        return fields + (member.heard.map { [("heard", $0.quotedAsJSON)] } ?? [])
      }
    } else {
      for member in members {
        StandardOutput.print("\(member.id)  \(member.kind)\(member.heard.map { "  heard \($0)" } ?? "")")
      }
    }
    if let reason = mount?.disagreement { throw Failure(device.address.text, reason) }
  }
}

struct ClusterRemoveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Take a member away, and make all keys new.",
    discussion: """
      Takes the passphrase of this device. The member can't open what is stored from now on. What it has read it may have kept: \
      change the secrets that it knew.
      """)

  @OptionGroup var address: ClusterAddressOptions

  @Argument(help: "The member's number, or the beginning of it.")
  var member: String

  func run() throws {
    guard member.count >= 4 else { throw ValidationError("at least 4 digits of the number") }
    try address.device().rotate(removing: member, ClusterInput.passphrase())
  }
}

struct ClusterRotateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rotate", abstract: "Make all keys of the store new, and seal everything again.",
    discussion: "Takes the passphrase of this device. Where it was interrupted, it is run again.")

  @OptionGroup var address: ClusterAddressOptions

  func run() throws {
    try address.device().rotate(removing: nil, ClusterInput.passphrase())
  }
}

struct ClusterDiscardCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "discard", abstract: "Remove a suite of settings that is damaged, for all devices.",
    discussion: """
      Takes the passphrase of this device. A suite is damaged where something else than Keyhole has changed what the cluster stores of \
      it; `keyhole doctor` names it. The settings that a mount still shows of it are lost with it: note them first. A suite that can \
      be read is not removed.
      """)

  @OptionGroup var address: ClusterAddressOptions

  @Argument(help: "The suite, such as com.example.app.")
  var suite: String

  func run() throws {
    let name = suite.hasPrefix("defaults/") ? String(suite.dropFirst("defaults/".count)) : suite
    try address.device().discard(ExactString(name), ClusterInput.passphrase())
  }
}

struct ClusterAcceptCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "accept", abstract: "Take a cluster as it is that was set back, or replaced.",
    discussion: """
      Takes the passphrase of this device. For a cluster that was restored from a backup on purpose: what it has now is the state \
      to begin with. The store has to be the same one. A mount has to be mounted again.
      """)

  @OptionGroup var address: ClusterAddressOptions

  func run() throws {
    let device = try address.device()
    guard try device.accept(ClusterInput.passphrase()) else { return }
    StandardError.write(
      "keyhole: the list of members does not go on from the one that this device has seen: a device that was removed since may belong to the store again.\n"
        + "`keyhole cluster members` lists them, and `keyhole cluster remove` takes one away\n")
  }
}

struct ClusterStatusCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Tell how the cluster's servers are, and this device's part in the store.",
    discussion: "`keyhole status` tells how a mount of the store is.")

  @OptionGroup var address: ClusterAddressOptions

  func run() throws {
    let device = try address.device()
    StandardOutput.print("store    \(device.address.text)")
    let servers = device.servers()
    for server in servers { StandardOutput.print("server   \(server.line)".escapedForTerminal) }
    guard servers.contains(where: \.answers) else {
      throw Failure(
        device.address.text,
        "no server of the cluster answers; `keyhole status` tells how a mount of the store is")
    }
    guard servers.count(where: \.hasLeader) * 2 > servers.count else {
      throw Failure(
        device.address.text,
        "a majority of its servers does not answer, and without one nothing can be read or stored; `keyhole status` tells how a mount of the store is"
      )
    }
    let members = try device.members()
    StandardOutput.print("members  \(members.count)")
    let own = members.first(where: \.isThisDevice)
    StandardOutput.print(
      "device   \(try own?.id ?? (device.isAsking() ? "asks to belong to the store" : "removed"))")
  }
}
