import Model
import Store

/// What an update makes of a suite.
struct SuiteChange {
  /// The moment of the commit.
  let time: Timestamp
  /// What the suite is to hold, with all times.
  let settings: [ExactString: Setting]
  /// Keys whose value or time differs, and keys that are gone.
  let differing: Set<ExactString>
  /// Values differ, so that the file has to be written.
  let isOfValues: Bool

  init(from old: [ExactString: Setting], to new: [ExactString: Setting], at time: Timestamp) {
    var settings = new
    var differing: Set<ExactString> = []
    var isOfValues = false
    var kept = 0
    for (key, setting) in new {
      let before = old[key]
      if before != nil { kept += 1 }
      if setting == before { continue }
      let isEqual = before?.value == setting.value
      let value = isEqual ? setting.value : setting.value.canonical
      settings[key] = Setting(
        value, modified: setting.modified ?? (isEqual ? before?.modified : time) ?? time)
      guard settings[key] != before else { continue }
      differing.insert(key)
      isOfValues = isOfValues || value != before?.value
    }
    if kept < old.count {
      differing.formUnion(old.keys.filter { new[$0] == nil })
      isOfValues = true
    }
    (self.time, self.settings, self.differing, self.isOfValues) = (time, settings, differing, isOfValues)
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
