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
