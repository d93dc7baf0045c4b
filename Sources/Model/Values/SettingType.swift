/// The type of a setting, as `user.keyhole.type` spells it.
public enum SettingType: String, CaseIterable, Sendable {
  case string
  case integer
  case real
  case bool
  case date
  case data
  case array
  case dictionary = "dict"
}
