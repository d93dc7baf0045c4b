import ClusterRecords
import Model
import Store

/// The settings that a change of a suite leaves different.
struct SettingChanges {
  /// New settings, those with another value or another time, and those that are gone.
  private(set) var list: [SettingChange] = []
  /// Not times alone.
  private(set) var changesValues = false

  init(
    from old: SharedDictionary<Setting>, to new: SharedDictionary<Setting>, at now: Timestamp
  ) {
    for difference in new.differences(from: old) {
      guard let after = difference.after else {
        list.append(.remove(difference.key))
        changesValues = true
        continue
      }
      let before = difference.before
      let isSame = before?.value == after.value
      let unset = isSame ? before?.modified : Self.moment(now, before)
      let modified = after.modified ?? unset ?? now
      if isSame, modified == before?.modified { continue }
      list.append(.set(SettingRecord(name: difference.key, value: after.value, modified: modified)))
      if !isSame { changesValues = true }
    }
  }

  /// Now, but later than the setting that is replaced.
  private static func moment(_ now: Timestamp, _ old: Setting?) -> Timestamp {
    guard let last = old?.modified, last >= now else { return now }
    return last.nanoseconds < 999_999_999
      ? Timestamp(seconds: last.seconds, nanoseconds: last.nanoseconds &+ 1)
      : Timestamp(seconds: last.seconds &+ 1)
  }
}
