import Model
import Platform
import Store

/// The result of an update of a suite.
struct SuiteChange {
  /// The moment of the commit.
  let time: Timestamp
  /// The next contents of the suite, with all times.
  let settings: SharedDictionary<Setting>
  /// Keys whose value or time differs, and keys that are gone.
  let differing: Set<ExactString>
  /// Values differ, so that the file has to be written.
  let isOfValues: Bool
  /// The number of the process that makes the change: this one, or the one that it does it for.
  let writer: Int32

  init(from old: SharedDictionary<Setting>, to contents: SuiteContents, at time: Timestamp) {
    writer = contents.writer ?? CurrentProcess.number
    let new = contents.settings
    var settings = new
    var differing: Set<ExactString> = []
    var isOfValues = false
    for difference in new.differences(from: old) {
      let before = difference.before
      let setting = difference.after.map { Self.settled($0, after: before, at: time) }
      settings[difference.key] = setting
      guard setting != before else { continue }
      differing.insert(difference.key)
      isOfValues = isOfValues || setting?.value != before?.value
    }
    (self.time, self.settings, self.differing, self.isOfValues) = (time, settings, differing, isOfValues)
  }

  /// Keys are gone, and nothing else has changed.
  var isRemoval: Bool { !differing.isEmpty && differing.allSatisfy { settings[$0] == nil } }

  var values: [ExactString: SettingValue] {
    settings.mapValues(\.value).dictionary
  }

  /// The values that are new or other ones.
  var differingValues: [ExactString: SettingValue] {
    var values: [ExactString: SettingValue] = [:]
    for key in differing { values[key] = settings[key]?.value }
    return values
  }

  private static func settled(_ setting: Setting, after before: Setting?, at time: Timestamp) -> Setting {
    let isEqual = before?.value == setting.value
    let value = isEqual ? setting.value : setting.value.canonical
    return Setting(value, modified: setting.modified ?? (isEqual ? before?.modified : time) ?? time)
  }
}

extension SuiteContents {
  /// The contents that a committed change leads to.
  func after(_ change: SuiteChange, _ stamp: SuiteStamp?) -> SuiteContents {
    var next = SuiteContents(settings: change.settings, stamp: stamp)
    next.times = times
    return next
  }
}

extension SettingValue {
  /// The value as it reads once it is stored: there is one `nan`, and a dictionary with nothing but the integer
  /// `CF$UID` is a reference.
  fileprivate var canonical: SettingValue {
    switch self {
    case .real(let number) where number.isNaN: .real(.nan)
    case .array(let items): .array(items.map(\.canonical))
    case .dictionary(let entries): PropertyLists.dictionary(entries.mapValues(\.canonical))
    default: self
    }
  }
}
