import Model
import Store
import Tree

extension MountConfiguration {
  /// For a status report: each key with its value and its origin.
  var report: SettingValue {
    let present = present
    var fields: [ExactString: SettingValue] = [:]
    for key in ConfigurationKey.allCases {
      let entry = present[key]
      fields[ExactString(key.rawValue)] = .dictionary([
        "value": entry.value, "origin": .string(ExactString(entry.origin.rawValue)),
      ])
    }
    return .dictionary(fields)
  }
}

extension Configuration {
  /// Reads the content of a status report; nil: there is none in it.
  init?(report: SettingValue?) {
    guard case .dictionary(let fields)? = report else { return nil }
    var values: [Origin: [ConfigurationKey: SettingValue]] = [:]
    for key in ConfigurationKey.allCases {
      guard case .dictionary(let entry)? = fields[ExactString(key.rawValue)], let value = entry["value"],
        case .string(let name)? = entry["origin"], let origin = Origin(rawValue: name.string)
      else { continue }
      values[origin, default: [:]][key] = value
    }
    self.init(options: values[.option] ?? [:], sealed: values[.vault] ?? [:], suite: values[.suite] ?? [:])
  }

  /// The keys that are set somewhere, for a person: `auth-reuse is 0 (suite)`.
  var summary: [String] {
    ConfigurationKey.allCases.filter { self[$0].origin != .fallback }.map { key in
      let entry = self[key]
      let isWeaker = key.isWeaker(entry.value, than: key.fallback)
      return "\(key.rawValue) is \(ConfigurationKey.text(of: entry.value)) (\(entry.origin.rawValue)"
        + (isWeaker ? ", protects less than the default)" : ")")
    }
  }
}

extension SuiteConfiguration {
  /// The settings that are not followed, of the suite whose file is in a folder.
  func problems(in folder: String) -> [Problem] {
    ignored.map { entry in
      Problem(
        subject: "\(folder)/\(Self.suite.string).plist",
        reason: "`\(entry.key.string.prefix(64))` is not followed: \(entry.reason)",
        remedy:
          "`keyhole rm \("defaults/\(Self.suite.string)/\(PathName(entry.key).string)".quotedForShell)` removes it"
      )
    }
  }
}
