import Model
import Store
import Synchronization

/// The settings that suites of layers show, as they were when they were asked for last: the next time costs what has changed since.
final class MergedSuites: Sendable {
  private struct Known {
    var layers: SettingLayers
    var settings: SharedDictionary<Setting>
  }

  private let known = Mutex<[ExactString: Known]>([:])

  func settings(of suite: ExactString, _ layers: SettingLayers) -> SharedDictionary<Setting> {
    let before = known.withLock { $0[suite] }
    let settings = before.map { layers.settings(from: $0.layers, $0.settings) } ?? layers.settings
    known.withLock { $0[suite] = Known(layers: layers, settings: settings) }
    return settings
  }

  func forget(_ suite: ExactString) { known.withLock { $0[suite] = nil } }
}

/// The suites that were ever seen to be removed in a layer: those that a change of the list of them may concern.
final class RemovedSuites: Sendable {
  private let known = Mutex<Set<ExactString>>([])

  func note(_ suites: [ExactString]) {
    if !suites.isEmpty { known.withLock { $0.formUnion(suites) } }
  }

  var all: [ExactString] { known.withLock { Array($0) } }
}
