import Model
import Store

/// Serves the suites of a mount to a process that can't read them by itself (`MountedSuites`).
struct SuiteServer {
  let store: SettingsStore
  let isReadOnly: Bool

  func reply(to request: SuiteRequest) throws(StoreError) -> ControlMessage {
    switch request {
    case .list:
      let suites = try store.engine.suites()
      return .suites(.list(suites.map { ListedSuite(name: $0.key, stamp: $0.value) }))
    case .stamp(let name): return .suites(.stamp(try store.engine.stamp(of: name)))
    case .contents(let name):
      return .suites(.contents(try store.suite(name).fetch().map { SuiteRecord($0.contents) }))
    case .change(let name, let stamp, let edits): return try change(name, stamp, edits)
    case .readOnlyReason(let name):
      let reason = isReadOnly ? "the mount is read-only" : try store.engine.readOnlyReason(of: name)
      return .suites(.readOnly(reason))
    case .problems: return .problems(store.engine.problems())
    case .room: return .room(try store.engine.room())
    case .history(let request): return try reply(to: request)
    case .layers:
      let origins = store.engine.origins
      return .suites(.layers(origins?.layerNames ?? [], written: origins?.writtenLayer ?? ""))
    case .origin(let name, let key):
      return .suites(.origin(try store.engine.origins?.origin(of: key, in: name)))
    case .reset(let name, let key): return .suites(.reset(try reset(key, in: name)))
    case .isStale: return .suites(.isStale(store.engine.isStale))
    case .create, .remove, .rename: try restructure(request)
    // It has no single reply: `SuiteWatcher`.
    case .watch: throw WireReader.unreadable
    }
    return .done
  }

  private func restructure(_ request: SuiteRequest) throws(StoreError) {
    try requireWritable()
    switch request {
    case .create(let name): try store.createSuite(name)
    case .remove(let name): try store.removeSuite(name)
    case .rename(let name, let newName): try store.renameSuite(name, to: newName)
    default: break
    }
  }

  private func reset(_ key: ExactString?, in suite: ExactString) throws(StoreError) -> Int {
    try requireWritable()
    return try store.reset(key, in: suite)
  }

  func requireWritable() throws(StoreError) {
    guard !isReadOnly else { throw .readOnly(reason: "the mount is read-only") }
  }

  private func change(
    _ name: ExactString, _ stamp: SuiteStamp, _ edits: [SuiteEdit]
  ) throws(StoreError) -> ControlMessage {
    try requireWritable()
    let stored = try store.suite(name).update { (contents) throws(StoreError) in
      guard contents.stamp == stamp else { throw .interrupted }
      for edit in edits {
        contents.settings[edit.key] = edit.value.map { Setting($0, modified: edit.modified) }
      }
    }
    return .suites(.contents(SuiteRecord(stored.contents)))
  }
}
