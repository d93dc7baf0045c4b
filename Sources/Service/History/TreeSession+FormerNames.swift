package import Model
import Store
import Tree

/// Values of settings that are kept under the names of keys that are gone, as a renamed key leaves them.
extension TreeSession {
  /// The values that a key, or the keys of a suite, have and had. Numbers and truth values are left out, which many settings share.
  package func settingValues(at path: TreePath) throws -> Set<SettingValue> {
    guard path.components.first == "defaults" else { return [] }
    return try settingValues(of: keysBySuite(items(at: path) + [path.string]))
  }

  func settingValues(of keys: [ExactString: Set<ExactString>]) -> Set<SettingValue> {
    var values: Set<SettingValue> = []
    for (suite, keys) in keys {
      for version in (try? settings.engine.history?.versions(of: suite)) ?? []
      where keys.contains(version.key) {
        values.insert(version.value)
      }
      guard let present = snapshot(of: suite)?.entries else { continue }
      values.formUnion(keys.compactMap { present[$0]?.value })
    }
    return values.filter(\.isOfOneSetting)
  }

  /// The paths of keys that are gone and of which one of these values is kept; sorted.
  package func removedKeys(having values: Set<SettingValue>) -> [String] {
    guard !values.isEmpty else { return [] }
    let paths = ((try? settings.engine.history?.suitesWithVersions()) ?? []).flatMap { suite in
      let kept = (try? settings.engine.history?.versions(of: suite)) ?? []
      let keys = Set(kept.filter { values.contains($0.value) }.map(\.key))
      let present = keys.isEmpty ? nil : snapshot(of: suite)?.entries
      return keys.filter { present?[$0] == nil }.map { key in
        "defaults/\(PathName(suite).string)/\(PathName(key).string)"
      }
    }
    return paths.sorted()
  }

  private func snapshot(of suite: ExactString) -> SuiteSnapshot? {
    (try? settings.existingSuite(suite)?.fetch()) ?? nil
  }

  /// For a person, after a purge; nil: none of the values is kept elsewhere.
  package func noteOnFormerNames(having values: Set<SettingValue>) -> String? {
    let paths = removedKeys(having: values)
    guard let first = paths.first else { return nil }
    let others = paths.count > 1 ? " and \(paths.count - 1) more" : ""
    return "the same value is kept of \(first)\(others), which was removed or renamed: "
      + "`keyhole history --purge \(first.quotedForShell)` deletes that too"
  }
}

extension SettingValue {
  fileprivate var isOfOneSetting: Bool {
    switch self {
    case .string(let text): !text.isEmpty
    case .data(let bytes): !bytes.isEmpty
    case .array(let items): !items.isEmpty
    case .dictionary(let entries): !entries.isEmpty
    case .integer, .real, .bool, .date, .uid: false
    }
  }
}
