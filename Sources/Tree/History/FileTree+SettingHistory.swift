import Model
import Store

// `.keyhole/history/defaults`: the values that keys had, as the text of their files.
extension FileTree {
  func settingPlaces(in history: HistoryPlace) throws(StoreError) -> [Place] {
    switch history {
    case .defaults: try (settings.engine.history?.suitesWithVersions() ?? []).map { .history(.suite($0)) }
    case .suite(let suite):
      try Set((settings.engine.history?.versions(of: suite) ?? []).map(\.key)).map { key in
        .history(.key(KeyPlace(suite: suite, key: key)))
      }
    case .key(let key):
      try settings.versions(of: key.key, in: key.suite).map { .history(.setting(key, $0.number)) }
    default: []
    }
  }

  func settingExists(_ history: HistoryPlace) throws(StoreError) -> Bool {
    switch history {
    case .setting(let key, let number):
      try settings.versions(of: key.key, in: key.suite).contains { $0.number == number }
    default: try !settingPlaces(in: history).isEmpty
    }
  }

  func settingVersion(_ number: UInt64, of key: KeyPlace) throws(StoreError) -> SettingVersion {
    let version = try settings.versions(of: key.key, in: key.suite).first { $0.number == number }
    guard let version else { throw .notFound }
    return version
  }

  func openSetting(
    _ number: UInt64, of key: KeyPlace, _ node: Node, _ mode: OpenMode
  ) throws(StoreError) -> Handle {
    guard !mode.contains(.write) else { throw .accessDenied(reason: "a version can only be read") }
    var state = Handle.State()
    state.draft = .untouched(.plain(try settings.codec.content(of: settingVersion(number, of: key).value)))
    return Handle(node, in: self, mode: mode, state: state)
  }
}
