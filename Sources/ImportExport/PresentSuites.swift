import Model
import Store

/// The suites as they are before an import, each asked for once where its settings follow each other: a suite of a cluster is asked for at the
/// mount's process.
struct PresentSuites {
  private let store: SettingsStore
  private var last: (name: ExactString, snapshot: SuiteSnapshot?)?

  init(_ store: SettingsStore) { self.store = store }

  /// nil: there is no such suite. - Throws: as `SuiteStore.fetch`.
  mutating func snapshot(of suite: ExactString) throws(StoreError) -> SuiteSnapshot? {
    if let last, last.name == suite { return last.snapshot }
    let snapshot = try store.existingSuite(suite)?.fetch()
    last = (suite, snapshot)
    return snapshot
  }
}
