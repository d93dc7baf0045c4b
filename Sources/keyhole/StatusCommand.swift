import ArgumentParser
import Glibc
import Model
import Suites

struct StatusCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "status", abstract: "Tell what is mounted where, and what was refused lately.")

  @Flag(help: "One JSON object, as in MOUNT/.keyhole/status.")
  var json = false

  func run() throws {
    let places = try Places.current()
    let mounts = RunningMount.all
    guard let mount = mounts.last(where: { $0.serves(places) }) else { throw notMounted(places) }
    guard !json else { return StandardOutput.write(mount.report) }
    StandardOutput.write(mount.description)
  }

  private func notMounted(_ places: Places) -> Failure {
    if let dead = MountTable().own.last(where: \.isDead) {
      return Failure(dead.path, "its process has died; `keyhole mount \(dead.path)` mounts it again")
    }
    return Failure(nil, "nothing is mounted; `keyhole mount` mounts on \(places.mountPoint)")
  }
}

/// A mount that answers, as its `.keyhole/status` describes it.
struct RunningMount {
  let path: String
  let report: String
  private let fields: [ExactString: SettingValue]

  static var all: [RunningMount] { MountTable().own.compactMap { RunningMount($0.path) } }

  private init?(_ path: String) {
    report = readFile(path + "/.keyhole/status")
    let codec = SettingCodec(propertyLists: PropertyLists())
    guard case .dictionary(let fields)? = try? codec.value(of: Array(report.utf8), as: .dictionary) else {
      return nil
    }
    self.path = path
    self.fields = fields
  }

  var process: Int32? {
    guard case .integer(let number)? = fields["pid"] else { return nil }
    return Int32(exactly: number)
  }

  /// Whether its stores are those that the commands of this environment use.
  func serves(_ places: Places) -> Bool {
    text("settings") == places.configuration && text("vault") == places.vault
  }

  private func text(_ name: ExactString) -> String {
    guard case .string(let text)? = fields[name] else { return "" }
    return text.string
  }

  /// One screen for people.
  var description: String {
    var lines = [
      "mounted on   \(path) since \(text("started")) by process \(process ?? 0), Keyhole \(text("version"))",
      "settings     \(text("settings"))",
      "keychain     \(text("keychainReason"))",
      "vault        \(text("vault"))",
    ]
    lines += list("problems").map { "problem      \($0)" }
    lines += list("refusals").map { "refused      \($0)" }
    return lines.map { $0.escapedForTerminal + "\n" }.joined()
  }

  private func list(_ name: ExactString) -> [String] {
    guard case .array(let values)? = fields[name] else { return [] }
    return values.map { value in
      switch value {
      case .string(let text): return text.string
      case .dictionary(let entry):
        return ["time", "path", "reason"].compactMap { (name: ExactString) in
          if case .string(let text)? = entry[name] { text.string } else { nil }
        }.joined(separator: "  ")
      default: return ""
      }
    }
  }
}
