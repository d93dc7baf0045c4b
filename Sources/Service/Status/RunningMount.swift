package import Control
import KeychainSelection
package import Model
import Platform
package import Store
import Suites

/// A mount that answers, as its `.keyhole/status` describes it, or the Secret Service without one.
package struct RunningMount {
  package let report: String
  private let path: String
  private let fields: [ExactString: SettingValue]

  /// - Throws: `Failure` with what to do.
  package init(_ record: MountRegistration) throws(Failure) {
    let death = Failure(record.path, "its process has died; \(record.remedyOfDeath)")
    guard record.isAlive else { throw death }
    if record.isService {
      self = try RunningMount(service: record)
      return
    }
    guard !record.isStopped, let report = readWithDeadline(record.path + "/.keyhole/status") else {
      throw Failure(record.path, record.silence)
    }
    // A read that fails at once: a process that was killed is there a moment longer than its mount answers.
    guard let mount = RunningMount(report, path: record.path) else { throw death }
    self = mount
  }

  private init(service record: MountRegistration) throws(Failure) {
    guard !record.isStopped, let report = record.report, let service = RunningMount(report, path: record.path)
    else {
      throw Failure(record.path, record.silence)
    }
    self = service
  }

  /// nil: the text is no report.
  init?(_ report: String, path: String) {
    let codec = SettingCodec(propertyLists: PropertyLists())
    guard case .dictionary(let fields)? = try? codec.value(of: Array(report.utf8), as: .dictionary) else {
      return nil
    }
    self.report = report
    self.path = path
    self.fields = fields
  }

  private var process: Int128 {
    guard case .integer(let number)? = fields["pid"] else { return 0 }
    return number
  }

  package var isLocked: Bool { flag("locked") }

  /// Whether the settings are those of a cluster that this device was not unlocked for.
  package var hasLockedCluster: Bool {
    guard case .dictionary(let fields)? = fields["cluster"] else { return false }
    return fields["state"] == .string("locked")
  }

  /// Whether the keychain is that of a cluster's store, which this device's passphrase opens.
  package var hasClusterKeychain: Bool { text("keychain") == "cluster" }

  /// Whether the keychain is that of a cluster's store, to which this device does not belong any more.
  private var isRemovedFromCluster: Bool {
    clusterText("state") == "removed" && text("keychain") == "cluster"
  }

  /// Whether it is locked, and a passphrase opens it.
  package var waitsForPassphrase: Bool { isLocked && flag("needsPassphrase") }

  /// The trust of the keychain, as its process reports it.
  var trust: KeychainTrust { KeychainTrust(fields["keychainTrust"]) }

  var keychainProblems: [Problem] { Problem.all(in: fields["keychainProblems"]) }

  /// The configuration that holds for the mount.
  package var configuration: Configuration {
    Configuration(report: fields["configuration"]) ?? Configuration()
  }

  private func flag(_ name: ExactString) -> Bool { fields[name] == .bool(true) }

  private func text(_ name: ExactString) -> String {
    guard case .string(let text)? = fields[name] else { return "" }
    return text.string
  }

  /// One line where the process is of another version than the command that asks, or its program was replaced since; nil: it
  /// is up to date.
  private func age(against version: String) -> String? {
    let program = ProgramStamp(path: text("program"), stamp: text("programStamp"))
    guard text("version") != version || !program.path.isEmpty && program.isReplaced else { return nil }
    let remedy =
      isService
      ? "`kill \(process)` and `keyhole service` start the new one"
      : "`keyhole unmount \(path.quotedForShell)` and `keyhole mount \(path.quotedForShell)` start the new one"
    return
      "outdated     its program was replaced since it was started, by Keyhole \(version) or another build; \(remedy)"
  }

  /// One screen for people; `version` is that of the command.
  package func description(_ version: String) -> String {
    var lines = [
      "\(place) since \(text("started")) by process \(process), Keyhole \(text("version"))",
      "settings     \(text("settings"))",
      "keychain     \(text("keychainReason"))",
      "vault        \(text("vault"))",
      "locked       \(lockDescription)",
    ]
    if let line = age(against: version) { lines.insert(line, at: 1) }
    lines += cluster.map { "cluster      \($0)" }
    if let journal { lines.append("journal      \(journal)") }
    if let offline { lines.append("offline      \(offline)") }
    if !text("bus").isEmpty { lines.append("bus          \(text("bus")), as the Secret Service") }
    if !text("locking").isEmpty { lines.append("locked by    \(text("locking"))") }
    if !text("approval").isEmpty { lines.append("approval     \(text("approval"))") }
    if case .firstUse(let changed) = trust {
      lines.append("first use    of this vault here; it was last changed at \(changed.iso8601)")
    }
    if !text("sealed").isEmpty { lines.append("sealed       \(text("sealed"))") }
    lines += configuration.summary.map { "set          \($0)" }
    lines += list("problems").map { "problem      \($0)" }
    lines += list("refusals").map { "refused      \($0)" }
    lines += list("slow").map { "slow         \($0)" }
    return lines.map { $0.escapedForTerminal + "\n" }.joined()
  }

  /// The lines about the cluster whose store is shown.
  private var cluster: [String] {
    guard case .dictionary(let fields)? = fields["cluster"] else { return [] }
    func text(_ name: ExactString) -> String? {
      guard case .string(let text)? = fields[name], !text.string.isEmpty else { return nil }
      return text.string
    }
    let since = text("silentSince").map { " since \($0)" } ?? ""
    let heard = text("silentSince") == nil ? text("heard").map { ", heard \($0)" } ?? "" : ""
    let reason = text("reason").map { ": \($0)" } ?? ""
    let plain = fields["encrypted"] == .bool(false) ? "; the connection is not encrypted" : ""
    let others = otherDevices.map { "device \($0.id), heard \($0.heard)" }
    return ["\(text("state") ?? "")\(since)\(heard)\(reason), as device \(text("device") ?? "")\(plain)"]
      + others
  }

  /// When the mount has last read a record of each other device of what that has seen.
  package var otherDevices: [(id: String, heard: String)] {
    guard case .dictionary(let cluster)? = fields["cluster"], case .array(let members)? = cluster["members"]
    else { return [] }
    return members.compactMap { member in
      guard case .dictionary(let fields) = member, case .string(let id)? = fields["device"],
        case .string(let heard)? = fields["heard"]
      else { return nil }
      return (id.string, heard.string)
    }
  }

  /// The versions of etcd of the cluster's servers.
  package var serverVersions: [String] {
    guard case .dictionary(let cluster)? = fields["cluster"], case .array(let versions)? = cluster["versions"]
    else { return [] }
    return versions.compactMap { if case .string(let text) = $0 { text.string } else { nil } }
  }

  /// The address of the store in a cluster that is shown; nil: there is none.
  package var store: String? { clusterText("store") }

  /// Why the other devices' records do not fit what is shown; nil: they do, or there are none.
  package var disagreement: String? {
    guard let state = clusterText("state"), ["forked", "withheld", "set-back"].contains(state) else {
      return nil
    }
    return clusterText("reason")
  }

  private func clusterText(_ name: ExactString) -> String? {
    guard case .dictionary(let cluster)? = fields["cluster"], case .string(let text)? = cluster[name] else {
      return nil
    }
    return text.string
  }

  /// The line about changes that are too large for one transaction; nil: there are none.
  private var journal: String? {
    guard case .dictionary(let cluster)? = fields["cluster"],
      case .integer(let parts)? = cluster["journalled"], parts > 0
    else { return nil }
    let count = parts == 1 ? "1 part" : "\(parts) parts"
    return "\(count) of a change that is too large for one transaction; "
      + "it holds, and the next one goes on with it"
  }

  /// The line about the copy of the store's secrets on this device; nil: none is kept.
  private var offline: String? {
    guard !isRemovedFromCluster else { return nil }
    guard case .dictionary(let cluster)? = fields["cluster"],
      case .dictionary(let fields)? = cluster["offlineSecrets"], case .string(let state)? = fields["state"]
    else { return nil }
    if case .string(let reason)? = fields["reason"], !reason.string.isEmpty {
      return "\(state.string): \(reason.string)"
    }
    guard case .string(let read)? = fields["read"], case .string(let end)? = fields["until"],
      case .integer(let count)? = fields["secrets"]
    else { return "\(state.string): they are copied when the cluster answers" }
    return "\(state.string): \(count) as of \(read.string), for use until \(end.string)"
  }

  /// Whether it is the Secret Service without a mount.
  private var isService: Bool { path == MountRegistration.serviceName }

  private var place: String {
    isService ? "served on    the session bus, as the Secret Service," : "mounted on   \(path)"
  }

  private var lockDescription: String {
    guard !isRemovedFromCluster else { return "yes; this device does not belong to the store any more" }
    guard isLocked else {
      return hasLockedCluster
        ? "the settings of \(store ?? "the cluster"); `keyhole unlock` opens them" : "no"
    }
    let asks = waitsForPassphrase && flag("asksToUnlock")
    return "yes; `keyhole unlock` opens it\(asks ? ", and a program that opens a secret has you asked" : "")"
  }

  /// The problems that the serving process reports; it knows what it has open.
  var problems: [String] { list("problems") }

  /// The latest refusals that may still hold, the newest last: when, of which path, and why. Those of a locked keychain hold until it is
  /// unlocked.
  var refusals: [(time: Timestamp, path: String, reason: String)] {
    guard case .array(let values)? = fields["refusals"] else { return [] }
    return values.compactMap { value in
      guard case .dictionary(let entry) = value, case .string(let time)? = entry["time"],
        case .string(let path)? = entry["path"], case .string(let reason)? = entry["reason"],
        var time = Timestamp(iso8601: time.string), entry["settled"] != .bool(true)
      else { return nil }
      if case .integer(let nanoseconds)? = entry["nanoseconds"] {
        time.nanoseconds = min(UInt32(clamping: nanoseconds), 999_999_999)
      }
      return (time, path.string, reason.string)
    }
  }

  private func list(_ name: ExactString) -> [String] {
    guard case .array(let values)? = fields[name] else { return [] }
    return values.map { value in
      switch value {
      case .string(let text): return text.string
      case .dictionary(let entry):
        return ["time", "path", "reason", "milliseconds"].compactMap { (name: ExactString) in
          switch entry[name] {
          case .string(let text)?: text.string
          case .integer(let number)?: "\(number) ms"
          default: nil
          }
        }.joined(separator: "  ")
      default: return ""
      }
    }
  }
}

/// The file's content, empty where it can't be read; nil where the mount hangs for five seconds. The thread that waits is left alone.
private func readWithDeadline(_ path: String) -> String? {
  Background.result(within: .seconds(5)) { readFile(path) }
}

extension MountRegistration {
  /// The command that mounts it again after its process has died. Without the store it would show this machine's own.
  package var remedyOfDeath: String {
    guard hasRemoteSettings || keychain.choice == .cluster else {
      return "`keyhole mount \(path.quotedForShell)` mounts it again"
    }
    let store = hasRemoteSettings ? settings.quotedForShell : "etcd://…"
    return
      "`keyhole mount -o store=\(store) \(path.quotedForShell)`, with the other options that it had, mounts it again"
  }
}
