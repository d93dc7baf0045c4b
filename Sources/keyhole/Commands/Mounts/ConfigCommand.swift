import ArgumentParser
import Model
import Prompting
import SecretMemory
import Service
import Store

struct ConfigCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "config", abstract: "Print or change the settings of Keyhole itself.",
    discussion: """
      Without a key, each setting with its value and its origin: the running mount's option, the vault, the suite
      `keyhole`, or the default, in this order. With a key, its value; with a value, sets it. What protects as much as the
      default, or more, goes into the suite, where any program of yours may write too. What protects less goes into the
      vault, and you are asked for the passphrase. A change holds at once in a running mount, but for `echo`, `eol` and
      `plain-session`, which hold for mounts that are made after it.

      The settings:
      \(settings)
      """)

  private static var settings: String {
    ConfigurationKey.allCases.map { key in
      let padding = String(repeating: " ", count: max(1, 15 - key.rawValue.count))
      let fallback = ConfigurationKey.text(of: key.fallback)
      return "  \(key.rawValue)\(padding)\(key.definition.summary)\n"
        + "  \(String(repeating: " ", count: 15))(\(key.values); default \(fallback)\(key.restriction.map { "; \($0)" } ?? ""))"
    }.joined(separator: "\n")
  }

  @Flag(help: "Keep the value in the vault, so that no program takes it back without your passphrase.")
  var sealed = false

  @Flag(help: "Remove the key from the suite and from the vault: the default holds again.")
  var unset = false

  @Flag(help: "A JSON array of objects: key, value, origin and default; of one key the object.")
  var json = false

  @OptionGroup var quiet: QuietOption

  @Argument(help: "A setting, such as auth-reuse.", completion: .configurationKey)
  var key: String?

  @Argument(help: "The new value; of an array its elements.", completion: .configurationValue)
  var value: [String] = []

  func validate() throws {
    if unset || sealed, key == nil { throw ValidationError("--unset and --sealed take a key") }
    if unset, !value.isEmpty { throw ValidationError("--unset takes no value") }
    if sealed, value.isEmpty { throw ValidationError("--sealed takes a value") }
    if json, unset || !value.isEmpty { throw ValidationError("--json prints, and changes nothing") }
    if let key, ConfigurationKey(rawValue: key) == nil {
      let keys = ConfigurationKey.allCases.map(\.rawValue)
      let likely = Spelling.nearest(to: key, among: keys)
      let hint = likely.map { "did you mean `\($0)`?" } ?? "there are \(keys.joined(separator: ", "))"
      throw ValidationError("Keyhole has no setting `\(key.prefix(64))`; \(hint)")
    }
    if sealed, let key = key.flatMap(ConfigurationKey.init(rawValue:)),
      case .neutral = key.definition.protection
    {
      throw ValidationError("`\(key.rawValue)` protects nothing: it stays in the suite")
    }
  }

  func run() throws {
    quiet.apply()
    allowUnlockedMemoryWithoutSwap()
    guard let key = key.flatMap(ConfigurationKey.init(rawValue:)), unset || !value.isEmpty else {
      return try list()
    }
    try change(key)
  }

  private func list() throws {
    let found = try ConfigurationSession.fetch()
    let keys = ConfigurationKey.allCases.filter { key == nil || $0.rawValue == key }
    if json { printJSON(keys, found) }
    for key in keys where !json {
      let entry = found.configuration[key]
      if self.key != nil {
        for word in ConfigurationKey.words(of: entry.value) where !word.isEmpty {
          StandardOutput.print(word.forStandardOutput)
        }
      } else {
        let value = ConfigurationKey.text(of: entry.value)
        StandardOutput.print(columns: key.rawValue, value, entry.origin.rawValue)
      }
    }
    if found.isSealedUnknown { note("the vault is locked: what it says of the settings is not known") }
    for entry in found.ignored {
      note(
        "\(SuiteConfiguration.suite.string).plist: `\(entry.key.string.prefix(64))` is not followed: "
          + entry.reason)
    }
  }

  private func printJSON(_ keys: [ConfigurationKey], _ found: ConfigurationSession.Found) {
    let fields = { (key: ConfigurationKey) -> [(name: String, value: String)] in
      let entry = found.configuration[key]
      return [
        ("key", key.rawValue.quotedAsJSON), ("value", entry.value.json),
        ("origin", entry.origin.rawValue.quotedAsJSON), ("default", key.fallback.json),
      ]
    }
    guard key != nil, let only = keys.first else { return JSONList.print(keys, fields) }
    StandardOutput.print(JSONList.object(fields(only)))
  }

  private func change(_ key: ConfigurationKey) throws {
    let session = try ConfigurationSession(for: key)
    if unset {
      try session.unset(key)
    } else if try session.set(key, to: value, inVault: sealed) == .vault {
      return
    }
    if session.isSealedUnknown {
      note("the vault is locked: where `\(key.rawValue)` lies in it, that value stays and comes first")
    }
  }

  private func note(_ text: String) {
    StandardError.note(text.escapedForTerminal)
  }
}

extension SettingValue {
  /// A bool, an integer, a string or an array of them.
  fileprivate var json: String {
    switch self {
    case .bool(let isTrue): isTrue ? "true" : "false"
    case .integer(let number): "\(number)"
    case .string(let text): text.string.quotedAsJSON
    case .array(let values): "[\(values.map(\.json).joined(separator: ","))]"
    default: "null"
    }
  }
}
